%% actor_count: one process sends a million messages to another, which counts them; a message.
%%
%% Unfair: a mailbox has no bound, so that the sender never waits.
-module(actor_count).
-export([main/1]).

-define(MESSAGES, 1000000).

count(Done, ?MESSAGES) -> Done ! {sum, ?MESSAGES};
count(Done, Sum) ->
    receive
        {increment, By} -> count(Done, Sum + By)
    end.

produce(_, 0) -> ok;
produce(Counter, Left) ->
    Counter ! {increment, 1},
    produce(Counter, Left - 1).

measure() ->
    Self = self(),
    Counter = spawn_link(fun() -> count(Self, 0) end),
    Start = bench:now_ns(),
    spawn_link(fun() -> produce(Counter, ?MESSAGES) end),
    Sum = receive {sum, S} -> S end,
    Taken = bench:now_ns() - Start,
    bench:check(Sum =:= ?MESSAGES, "the sum is ~p", [Sum]),
    Taken / ?MESSAGES.

main(Arguments) ->
    bench:samples("actor_count", bench:threads(Arguments), "ns", 5, fun measure/0).
