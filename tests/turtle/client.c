/*
 * usage: client DO...
 *
 * Acts like a user on the window of examples/turtle, as another client of the X server: the only window that accepts a
 * request to close. Each DO is one of: close, as the button of a window manager does; space, a key; move, the pointer
 * across the window in 50 steps; cover, with a window that goes away again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/keysym.h>

static void wait_ms(int ms)
{
    usleep((useconds_t)ms * 1000);
}

static int can_be_closed(Display *display, Window window)
{
    Atom *protocols;
    int count = 0;
    if (!XGetWMProtocols(display, window, &protocols, &count))
        return 0;
    XFree(protocols);
    return count > 0;
}

/* It may not be there as yet. */
static Window find_window(Display *display)
{
    for (int tries = 0; tries < 15000; tries++) {
        Window root, parent, *children, found = None;
        unsigned count = 0;
        if (XQueryTree(display, DefaultRootWindow(display), &root, &parent, &children, &count) && children) {
            for (unsigned i = 0; i < count && found == None; i++)
                if (can_be_closed(display, children[i]))
                    found = children[i];
            XFree(children);
        }
        if (found != None)
            return found;
        wait_ms(20);
    }
    fprintf(stderr, "client: there is no window\n");
    exit(1);
}

static void close_window(Display *display, Window window)
{
    XEvent event = {.xclient = {.type = ClientMessage, .window = window, .format = 32}};
    event.xclient.message_type = XInternAtom(display, "WM_PROTOCOLS", False);
    event.xclient.data.l[0] = (long)XInternAtom(display, "WM_DELETE_WINDOW", False);
    XSendEvent(display, window, False, NoEventMask, &event);
}

static void press_space(Display *display, Window window)
{
    XEvent event = {.xkey = {.type = KeyPress, .window = window, .root = DefaultRootWindow(display)}};
    event.xkey.keycode = XKeysymToKeycode(display, XK_space);
    event.xkey.same_screen = True;
    XSendEvent(display, window, True, KeyPressMask, &event);
    event.type = KeyRelease;
    XSendEvent(display, window, True, KeyReleaseMask, &event);
}

static void move_pointer(Display *display, Window window)
{
    for (int i = 0; i < 50; i++) {
        XWarpPointer(display, None, window, 0, 0, 0, 0, 10 + i, 20 + i);
        XFlush(display);
        wait_ms(10);
    }
}

static void cover_window(Display *display)
{
    XSetWindowAttributes attributes = {.override_redirect = True, .background_pixel = 0xffffff};
    Window cover = XCreateWindow(display, DefaultRootWindow(display), 0, 0, 10000, 10000, 0, CopyFromParent,
                                 InputOutput, CopyFromParent, CWOverrideRedirect | CWBackPixel, &attributes);
    XMapRaised(display, cover);
    XSync(display, False);
    wait_ms(200);
    XDestroyWindow(display, cover);
}

int main(int argc, char **argv)
{
    Display *display = XOpenDisplay(NULL);
    if (!display) {
        fprintf(stderr, "client: there is no display\n");
        return 1;
    }
    Window window = find_window(display);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "close") == 0)
            close_window(display, window);
        else if (strcmp(argv[i], "space") == 0)
            press_space(display, window);
        else if (strcmp(argv[i], "move") == 0)
            move_pointer(display, window);
        else if (strcmp(argv[i], "cover") == 0)
            cover_window(display);
    }
    XCloseDisplay(display);
    return 0;
}
