%% chan_rtt: two processes send one value back and forth; a round trip.
%%
%% Unfair: a mailbox takes the place of each channel: its sender never waits.
-module(chan_rtt).
-export([main/1]).

-define(ROUND_TRIPS, 500000).

echo() ->
    receive
        {From, N} ->
            From ! N,
            echo();
        close -> ok
    end.

rounds(_, ?ROUND_TRIPS, Sum) -> Sum;
rounds(Echo, I, Sum) ->
    Echo ! {self(), I},
    receive
        Answer -> rounds(Echo, I + 1, Sum + Answer)
    end.

measure() ->
    Echo = spawn_link(fun echo/0),
    Start = bench:now_ns(),
    Sum = rounds(Echo, 0, 0),
    Taken = bench:now_ns() - Start,
    Echo ! close,
    bench:check(Sum =:= ?ROUND_TRIPS * (?ROUND_TRIPS - 1) div 2, "the sum of the answers is ~p", [Sum]),
    Taken / ?ROUND_TRIPS.

main([_, _ | _]) -> bench:leave_out("Erlang has no such row");
main(Arguments) ->
    bench:samples("chan_rtt", bench:threads(Arguments), "ns", 5, fun measure/0).
