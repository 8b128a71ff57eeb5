%% select4: one process receives from four others, of which each waits for an answer before it sends the next item; per
%% item.
%%
%% Unfair: a process has one mailbox for all four; an item and its answer take the place of an unbuffered channel.
-module(select4).
-export([main/1]).

-define(CHANNELS, 4).
-define(ITEMS, 100000).

produce(_, _, N) when N > ?ITEMS -> ok;
produce(To, Channel, N) ->
    To ! {Channel, self(), N},
    receive next -> produce(To, Channel, N + 1) end.

take(A, B, C, D) when A + B + C + D =:= ?CHANNELS * ?ITEMS -> ok;
take(A, B, C, D) ->
    receive
        {0, From, N} when N =:= A + 1 -> From ! next, take(N, B, C, D);
        {1, From, N} when N =:= B + 1 -> From ! next, take(A, N, C, D);
        {2, From, N} when N =:= C + 1 -> From ! next, take(A, B, N, D);
        {3, From, N} when N =:= D + 1 -> From ! next, take(A, B, C, N)
    after 10000 -> bench:check(false, "items ~p of the channels", [{A, B, C, D}])
    end.

measure() ->
    Self = self(),
    [spawn_link(fun() -> produce(Self, Channel, 1) end) || Channel <- lists:seq(0, ?CHANNELS - 1)],
    Start = bench:now_ns(),
    take(0, 0, 0, 0),
    (bench:now_ns() - Start) / (?CHANNELS * ?ITEMS).

main(Arguments) ->
    bench:samples("select4", bench:threads(Arguments), "ns", 5, fun measure/0).
