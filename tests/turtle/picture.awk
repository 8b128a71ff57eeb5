# usage: od -An -v -tu1 -w$((4 * SIZE)) | awk -v curve=NAME -v depth=N -v size=SIZE -f picture.awk
#
# Whether a window, a line of bytes (blue, green, red, none) for each line of its pixels, shows a curve as it has to be: all
# that is lit, and nothing else. Where a step goes, and what colour it has, is found in other ways than examples/turtle
# does: for Hilbert's curve and the dragon from the number of the step alone, and these have to be right to the pixel. All
# others by writing the whole word down, and going along it; a pixel may be one off.

function fail(words)
{
    print curve " of depth " depth ": " words
    failed = 1
    exit 1
}

function floor(value,    whole)
{
    whole = int(value)
    return whole > value ? whole - 1 : whole
}

function round(value) { return floor(value + 0.5) }

function add_step(x0, y0, x1, y1)
{
    step_x0[steps] = x0; step_y0[steps] = y0
    step_x1[steps] = x1; step_y1[steps] = y1
    steps++
    if (x0 < left) left = x0
    if (x1 < left) left = x1
    if (x0 > right) right = x0
    if (x1 > right) right = x1
    if (y0 < low) low = y0
    if (y1 < low) low = y1
    if (y0 > high) high = y0
    if (y1 > high) high = y1
}

# Each two bits of the number, from the lowest, say in which quarter it is; the lower levels are turned accordingly.
function hilbert_place(number,    side, in_x, in_y, kept)
{
    place_x = place_y = 0
    for (side = 1; side < 2 ^ depth; side *= 2) {
        in_x = int(number / 2) % 2
        in_y = (number + in_x) % 2
        if (!in_y) {
            if (in_x) {
                place_x = side - 1 - place_x
                place_y = side - 1 - place_y
            }
            kept = place_x
            place_x = place_y
            place_y = kept
        }
        place_x += side * in_x
        place_y += side * in_y
        number = int(number / 4)
    }
}

function hilbert(    number, x, y)
{
    for (number = 1; number < 4 ^ depth; number++) {
        hilbert_place(number - 1)
        x = place_x
        y = place_y
        hilbert_place(number)
        add_step(x, y, place_x, place_y)
    }
}

# Which way the paper is folded after a step is told by its number without its factors of 2.
function dragon(    number, odd, x, y, dx, dy, kept)
{
    dx = 1
    for (number = 1; number <= 2 ^ depth; number++) {
        add_step(x, y, x + dx, y + dy)
        x += dx
        y += dy
        for (odd = number; odd % 2 == 0;)
            odd /= 2
        kept = dx
        dx = odd % 4 == 1 ? -dy : dy
        dy = odd % 4 == 1 ? kept : -kept
    }
}

function rewritten(word,    times, i, letter, longer)
{
    for (times = 0; times < depth; times++) {
        longer = ""
        for (i = 1; i <= length(word); i++) {
            letter = substr(word, i, 1)
            longer = longer (letter in rule ? rule[letter] : letter)
        }
        word = longer
    }
    return word
}

function follow(word, angle, direction,    i, letter, x, y, kept, kept_x, kept_y, kept_direction)
{
    for (i = 1; i <= length(word); i++) {
        letter = substr(word, i, 1)
        if (letter == "F" || letter == "G") {
            add_step(x, y, x + cos(direction), y + sin(direction))
            x += cos(direction)
            y += sin(direction)
        } else if (letter == "+") {
            direction += angle
        } else if (letter == "-") {
            direction -= angle
        } else if (letter == "[") {
            kept_x[++kept] = x
            kept_y[kept] = y
            kept_direction[kept] = direction
        } else if (letter == "]") {
            x = kept_x[kept]
            y = kept_y[kept]
            direction = kept_direction[kept--]
        }
    }
}

function find_steps(    degree)
{
    steps = 0
    degree = atan2(0, -1) / 180
    if (curve == "hilbert") {
        exact = 1
        hilbert()
    } else if (curve == "dragon") {
        exact = 1
        dragon()
    } else if (curve == "levy") {
        rule["F"] = "+F--F+"
        follow(rewritten("F"), 45 * degree, 0)
    } else if (curve == "koch") {
        rule["F"] = "F+F--F+F"
        follow(rewritten("F--F--F"), 60 * degree, 0)
    } else if (curve == "sierpinski") {
        rule["F"] = "G-F-G"
        rule["G"] = "F+G+F"
        follow(rewritten("F"), 60 * degree, 0)
    } else if (curve == "gosper") {
        rule["F"] = "F-G--G+F++FF+G-"
        rule["G"] = "+F-GG--G-F++F+G"
        follow(rewritten("F"), 60 * degree, 0)
    } else if (curve == "plant") {
        rule["X"] = "F+[[X]-X]-F[-FX]+X"
        rule["F"] = "FF"
        follow(rewritten("X"), 22.5 * degree, 67.5 * degree)
    } else {
        fail("there is no such curve")
    }
}

# In the middle of the window, with a margin of 8 pixels.
function find_scale(    extent)
{
    extent = right - left > high - low ? right - left : high - low
    scale = (size - 17) / extent
    if (exact)
        scale = floor(scale)
    origin_x = floor((size - 1 - scale * (left + right)) / 2)
    origin_y = floor((size - 1 + scale * (low + high)) / 2)
    if (exact && scale < 2)
        fail("it is too deep to be looked at")
}

# All pixels that a step comes to.
function mark(number,    count, i, part, x, y)
{
    count = exact ? scale : int(2 * scale) + 2
    for (i = 0; i <= count; i++) {
        part = i / count
        x = origin_x + scale * (step_x0[number] + part * (step_x1[number] - step_x0[number]))
        y = origin_y - scale * (step_y0[number] + part * (step_y1[number] - step_y0[number]))
        wanted[round(x), round(y)] = 1
    }
}

function near(set, x, y,    dx, dy)
{
    for (dx = -1; dx <= 1; dx++)
        for (dy = -1; dy <= 1; dy++)
            if ((x + dx, y + dy) in set)
                return 1
    return 0
}

function compare(    place, at)
{
    for (place in lit) {
        split(place, at, SUBSEP)
        if (exact ? !(place in wanted) : !near(wanted, at[1], at[2]))
            fail("there is something at " at[1] ", " at[2])
    }
    for (place in wanted) {
        split(place, at, SUBSEP)
        if (exact ? !(place in lit) : !near(lit, at[1], at[2]))
            fail("there is nothing at " at[1] ", " at[2])
    }
}

function shade(part, of) { return round(155 + 100 * cos(2 * atan2(0, -1) * (part - of))) }

function differ(a, b) { return a - b > 1 || b - a > 1 }

# The colours go once round from the first step to the last. One that has pixels of its own shows them in its middle.
function compare_colours(    number, x, y, part, rgb)
{
    for (number = 0; number < steps; number++) {
        x = floor(origin_x + scale * (step_x0[number] + step_x1[number]) / 2)
        y = floor(origin_y - scale * (step_y0[number] + step_y1[number]) / 2)
        part = number / steps
        split(lit[x, y], rgb, " ")
        if (differ(rgb[1], shade(part, 0)) || differ(rgb[2], shade(part, 1 / 3)) || differ(rgb[3], shade(part, 2 / 3)))
            fail("step " number " has the colour of another one")
    }
}

{
    if (NF != 4 * size)
        fail("line " NR " has " NF " bytes")
    for (i = 1; i < NF; i += 4)
        if ($i + $(i + 1) + $(i + 2) > 0)
            lit[(i - 1) / 4, NR - 1] = $(i + 2) " " $(i + 1) " " $i
}

END {
    if (failed)
        exit 1
    if (NR != size)
        fail(NR " lines of pixels")
    find_steps()
    find_scale()
    for (number = 0; number < steps; number++)
        mark(number)
    compare()
    if (exact)
        compare_colours()
    for (place in lit)
        pixels++
    if (curve == "hilbert" && pixels != 1 + scale * (4 ^ depth - 1))
        fail(pixels " pixels")
    print steps, pixels
}
