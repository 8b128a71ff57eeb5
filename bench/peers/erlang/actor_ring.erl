%% actor_ring: 503 processes in a ring pass one number on, a million times; a hop.
-module(actor_ring).
-export([main/1]).

-define(ACTORS, 503).
-define(TIMES, 1000000).

pass(Done, Hops) ->
    receive
        {next, Next} -> pass(Done, Next, Hops)
    end.

pass(Done, Next, Hops) ->
    receive
        stop -> Done ! {hops, Hops};
        0 ->
            Done ! over,
            pass(Done, Next, Hops + 1);
        Left ->
            Next ! Left - 1,
            pass(Done, Next, Hops + 1)
    end.

measure() ->
    Self = self(),
    Ring = [spawn_link(fun() -> pass(Self, 0) end) || _ <- lists:seq(1, ?ACTORS)],
    [Actor ! {next, Next} || {Actor, Next} <- lists:zip(Ring, tl(Ring) ++ [hd(Ring)])],
    Start = bench:now_ns(),
    hd(Ring) ! ?TIMES,
    receive over -> ok end,
    Taken = bench:now_ns() - Start,
    [Actor ! stop || Actor <- Ring],
    Hops = lists:sum([receive {hops, H} -> H end || _ <- Ring]),
    bench:check(Hops =:= ?TIMES + 1, "~p hops", [Hops]),
    Taken / ?TIMES.

main(Arguments) ->
    bench:samples("actor_ring", bench:threads(Arguments), "ns", 5, fun measure/0).
