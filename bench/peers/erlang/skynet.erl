%% skynet: a tree of processes, ten children each, a million leaves; every process returns the sum of its leaves' numbers.
-module(skynet).
-export([main/1]).

-define(FAN_OUT, 10).
-define(LEAVES, 1000000).

sky(First, 1) -> First;
sky(First, Leaves) ->
    Parent = self(),
    Each = Leaves div ?FAN_OUT,
    [spawn_link(fun() -> Parent ! {sum, sky(First + I * Each, Each)} end) || I <- lists:seq(0, ?FAN_OUT - 1)],
    add_up(?FAN_OUT, 0).

add_up(0, Sum) -> Sum;
add_up(Left, Sum) ->
    receive
        {sum, Part} -> add_up(Left - 1, Sum + Part)
    end.

measure() ->
    Start = bench:now_ns(),
    Sum = sky(0, ?LEAVES),
    Taken = bench:now_ns() - Start,
    bench:check(Sum =:= ?LEAVES * (?LEAVES - 1) div 2, "sum ~p", [Sum]),
    Taken / 1.0e6.

main(Arguments) ->
    bench:samples("skynet", bench:threads(Arguments), "ms", 1, fun measure/0).
