# What the pipeline computes, for comparison: LC_ALL=C awk -F'[ ]' -f report.awk LOG | LC_ALL=C sort
{
    path = $7
    sub(/\?.*/, "", path)
    day = substr($4, 2, 2)
    month = (index("JanFebMarAprMayJunJulAugSepOctNovDec", substr($4, 5, 3)) + 2) / 3
    add(sprintf("minute %s-%02d-%sT%s", substr($4, 9, 4), month, day, substr($4, 14, 5)))
    add("path " (path == "" ? "-" : path) " " $9)
}

function add(key)
{
    requests[key]++
    bytes[key] += $10
}

END {
    for (key in requests)
        printf "%s %.0f %.0f\n", key, requests[key], bytes[key]
}
