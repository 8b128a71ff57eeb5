%% actor_pingpong: two processes send a number back and forth, each to the sender of what it got; a round trip.
-module(actor_pingpong).
-export([main/1]).

-define(ROUND_TRIPS, 1000000).

answer() ->
    receive
        {ball, N, Sender} ->
            Sender ! {ball, N, self()},
            answer();
        stop -> ok
    end.

play(Other, Done, Sum) ->
    receive
        {ball, ?ROUND_TRIPS, _} -> Done ! {sum, Sum + ?ROUND_TRIPS};
        {ball, N, _} ->
            Other ! {ball, N + 1, self()},
            play(Other, Done, Sum + N)
    end.

measure() ->
    Self = self(),
    Passive = spawn_link(fun answer/0),
    Active = spawn_link(fun() -> play(Passive, Self, 0) end),
    Start = bench:now_ns(),
    Active ! {ball, 0, none},
    Sum = receive {sum, S} -> S end,
    Taken = bench:now_ns() - Start,
    Passive ! stop,
    bench:check(Sum =:= ?ROUND_TRIPS * (?ROUND_TRIPS + 1) div 2, "the sum is ~p", [Sum]),
    Taken / ?ROUND_TRIPS.

main(Arguments) ->
    bench:samples("actor_pingpong", bench:threads(Arguments), "ns", 5, fun measure/0).
