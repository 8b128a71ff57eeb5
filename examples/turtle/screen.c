/*
 * The window: all calls of SDL. What is drawn goes to a canvas in memory, which is copied into the window now and then;
 * so it can be shown again when the window was covered, and be saved.
 */
#if !__has_include(<SDL2/SDL.h>)
#error "turtle needs SDL 2: the package libsdl2-dev of Debian, SDL2-devel of Fedora"
#endif
#include "turtle.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <SDL2/SDL.h>
#include <SDL2/SDL_syswm.h>

#include <strand/io.h>

const strand_kind SCREEN = STRAND_KIND("screen", &STRAND_ERROR);
const strand_kind CLOSED = STRAND_KIND("closed", &STRAND_ERROR);

/* SDL's reason is copied at once: the next call may have one of its own. */
__attribute__((noreturn)) static void fail(const char *doing)
{
    char why[120];
    snprintf(why, sizeof why, "%s", SDL_GetError());
    const char *driver = SDL_GetCurrentVideoDriver(), *display = getenv("DISPLAY");
    strand_throw(&SCREEN, "%s: %s (SDL's driver is %s, DISPLAY is %s)", doing, why, driver ? driver : "none",
                 display ? display : "not set");
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* A copy of the descriptor, to be waited for: SDL closes its own, and one that strands have used is for strand_close.
 */
static int copy_descriptor(SDL_Window *window)
{
    SDL_SysWMinfo info;
    SDL_VERSION(&info.version);
#ifdef SDL_VIDEO_DRIVER_X11
    if (SDL_GetWindowWMInfo(window, &info) && info.subsystem == SDL_SYSWM_X11)
        return fcntl(ConnectionNumber(info.info.x11.display), F_DUPFD_CLOEXEC, 0);
#endif
    return -1;
}

/* Without a display SDL draws for nobody, if it is let. */
static void must_be_seen(void)
{
    if (!getenv("SDL_VIDEODRIVER") && strcmp(SDL_GetCurrentVideoDriver(), "offscreen") == 0) {
        SDL_SetError("there is no display");
        fail("no window is available");
    }
}

void screen_open(struct screen *screen, const char *title, int size)
{
    SDL_SetHint(SDL_HINT_NO_SIGNAL_HANDLERS, "1");       /* Ctrl-C is for the strands */
    SDL_SetHint(SDL_HINT_FRAMEBUFFER_ACCELERATION, "0"); /* for a few lines no driver of a graphics card is needed */
    if (SDL_Init(SDL_INIT_VIDEO) != 0)
        fail("no window is available");
    must_be_seen();
    screen->window =
        SDL_CreateWindow(title, SDL_WINDOWPOS_UNDEFINED, SDL_WINDOWPOS_UNDEFINED, size, size, SDL_WINDOW_SHOWN);
    if (!screen->window)
        fail("no window is available");
    screen->canvas = SDL_CreateRGBSurfaceWithFormat(0, size, size, 32, SDL_PIXELFORMAT_RGB888);
    screen->renderer = screen->canvas ? SDL_CreateSoftwareRenderer(screen->canvas) : NULL;
    if (!screen->renderer || SDL_RenderClear(screen->renderer) != 0)
        fail("there is no canvas");
    screen->descriptor = copy_descriptor(screen->window);
    screen->stale = true;
}

void screen_close(struct screen *screen)
{
    if (screen->descriptor >= 0)
        strand_close(screen->descriptor);
    if (screen->renderer)
        SDL_DestroyRenderer(screen->renderer);
    if (screen->canvas)
        SDL_FreeSurface(screen->canvas);
    if (screen->window)
        SDL_DestroyWindow(screen->window);
    SDL_Quit();
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Once round the colours of the rainbow. */
static Uint8 shade(double part, double of)
{
    return (Uint8)lround(155 + 100 * cos(2 * 3.14159265358979 * (part - of)));
}

void screen_draw(struct screen *screen, const struct line *lines, int count, double from, double to)
{
    for (int i = 0; i < count; i++) {
        double part = from + (to - from) * i / count;
        SDL_SetRenderDrawColor(screen->renderer, shade(part, 0), shade(part, 1 / 3.0), shade(part, 2 / 3.0), 255);
        if (SDL_RenderDrawLine(screen->renderer, lines[i].from_x, lines[i].from_y, lines[i].to_x, lines[i].to_y) != 0)
            fail("draw a line");
    }
    screen->stale = true;
}

void screen_show(struct screen *screen)
{
    SDL_Surface *shown = SDL_GetWindowSurface(screen->window);
    if (!shown || SDL_RenderFlush(screen->renderer) != 0 || SDL_BlitSurface(screen->canvas, NULL, shown, NULL) != 0 ||
        SDL_UpdateWindowSurface(screen->window) != 0)
        fail("show the picture");
    screen->stale = false;
}

void screen_save(const struct screen *screen, const char *path)
{
    if (SDL_RenderFlush(screen->renderer) != 0 || SDL_SaveBMP(screen->canvas, path) != 0)
        strand_throw(&SCREEN, "%s: %s", path, SDL_GetError());
}

/* ---- events ---------------------------------------------------------------------------------- */

static void press(struct screen *screen, SDL_Keycode key)
{
    if (key == SDLK_q || key == SDLK_ESCAPE)
        strand_throw(&CLOSED, "the window was closed");
    if (key == SDLK_SPACE)
        screen->held = !screen->held;
}

uint64_t screen_look(struct screen *screen)
{
    uint64_t count = 0;
    for (SDL_Event event; SDL_PollEvent(&event); count++) {
        if (event.type == SDL_QUIT)
            strand_throw(&CLOSED, "the window was closed");
        if (event.type == SDL_KEYDOWN && !event.key.repeat)
            press(screen, event.key.keysym.sym);
        if (event.type == SDL_WINDOWEVENT && event.window.event == SDL_WINDOWEVENT_EXPOSED)
            screen->stale = true;
    }
    return count;
}
