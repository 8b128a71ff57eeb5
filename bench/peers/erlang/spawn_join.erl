%% spawn_join: spawn a process that sends its argument back, wait for it, again and again.
-module(spawn_join).
-export([main/1]).

-define(ROUNDS, 300000).

rounds(?ROUNDS, Sum) -> Sum;
rounds(I, Sum) ->
    Parent = self(),
    Child = spawn_link(fun() -> Parent ! {self(), I} end),
    receive
        {Child, Value} -> rounds(I + 1, Sum + Value)
    end.

measure() ->
    Start = bench:now_ns(),
    Sum = rounds(0, 0),
    Taken = bench:now_ns() - Start,
    bench:check(Sum =:= ?ROUNDS * (?ROUNDS - 1) div 2, "sum ~p", [Sum]),
    Taken / ?ROUNDS.

main(Arguments) ->
    bench:samples("spawn_join", bench:threads(Arguments), "ns", 5, fun measure/0).
