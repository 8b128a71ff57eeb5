%% watches: N processes monitor one that then ends, and each gets its notice; a monitor with its notice.
-module(watches).
-export([main/1]).

-define(WATCHES, 100000).

watch(Parent) ->
    receive
        {look, At} ->
            Monitor = monitor(process, At),
            Parent ! watching,
            receive {'DOWN', Monitor, _, _, _} -> Parent ! noticed end,
            watch(Parent)
    end.

wait(_, 0) -> ok;
wait(What, Left) -> receive What -> wait(What, Left - 1) end.

once(All, Watchers) ->
    One = spawn(fun() -> receive stop -> ok end end),
    [Watcher ! {look, One} || Watcher <- All],
    wait(watching, Watchers),
    One ! stop,
    wait(noticed, Watchers).

measure(All, Watchers) ->
    Times = max(1, ?WATCHES div Watchers),
    Start = bench:now_ns(),
    [once(All, Watchers) || _ <- lists:seq(1, Times)],
    (bench:now_ns() - Start) / (Times * Watchers).

main([Count]) ->
    Watchers = list_to_integer(Count),
    Self = self(),
    All = [spawn_link(fun() -> watch(Self) end) || _ <- lists:seq(1, Watchers)],
    bench:samples("watches", 1, "ns", 5, fun() -> measure(All, Watchers) end).
