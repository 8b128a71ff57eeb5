%% spawn_batch: spawn 10 000 processes, then wait for them all. Per process. Their answers are taken as they come: a
%% receive that looks for one of ten thousand messages would take each of them up again and again.
-module(spawn_batch).
-export([main/1]).

-define(PROCESSES, 10000).
-define(BATCHES, 10).

add_up(0, Sum) -> Sum;
add_up(Left, Sum) ->
    receive
        {value, Value} -> add_up(Left - 1, Sum + Value)
    end.

batch() ->
    Parent = self(),
    [spawn_link(fun() -> Parent ! {value, I} end) || I <- lists:seq(0, ?PROCESSES - 1)],
    add_up(?PROCESSES, 0).

measure() ->
    Start = bench:now_ns(),
    Sum = lists:sum([batch() || _ <- lists:seq(1, ?BATCHES)]),
    Taken = bench:now_ns() - Start,
    bench:check(Sum =:= ?BATCHES * ?PROCESSES * (?PROCESSES - 1) div 2, "sum ~p", [Sum]),
    Taken / ?BATCHES / ?PROCESSES.

main(Arguments) ->
    bench:samples("spawn_batch", bench:threads(Arguments), "ns", 5, fun measure/0).
