%% mailboxes: one sends a million messages, one after the other to each of N processes; a message.
%%
%% Unfair: a mailbox has no bound, so that the sender never waits.
-module(mailboxes).
-export([main/1]).

-define(MESSAGES, 1000000).

keep(Sum) ->
    receive
        {add, N} -> keep(Sum + N);
        {sum, Parent} ->
            Parent ! {sum, Sum},
            keep(0)
    end.

send(?MESSAGES, _, _) -> ok;
send(N, [], All) -> send(N, All, All);
send(N, [Actor | Others], All) ->
    Actor ! {add, N},
    send(N + 1, Others, All).

measure(All) ->
    Self = self(),
    Start = bench:now_ns(),
    send(0, All, All),
    [Actor ! {sum, Self} || Actor <- All],
    Sum = lists:sum([receive {sum, S} -> S end || _ <- All]),
    Taken = bench:now_ns() - Start,
    bench:check(Sum =:= ?MESSAGES * (?MESSAGES - 1) div 2, "the sum is ~p", [Sum]),
    Taken / ?MESSAGES.

main([Count]) ->
    All = [spawn_link(fun() -> keep(0) end) || _ <- lists:seq(1, list_to_integer(Count))],
    bench:samples("mailboxes", 1, "ns", 5, fun() -> measure(All) end).
