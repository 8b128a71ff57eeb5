%% switch, yield1000: N processes on one scheduler that do nothing but yield. One switch, one way.
-module(switch).
-export([main/1]).

-define(SWITCHES, 1000000).

take_turns(0) -> ok;
take_turns(Left) ->
    erlang:yield(),
    take_turns(Left - 1).

measure(Processes) ->
    Turns = ?SWITCHES div Processes,
    Parent = self(),
    Start = bench:now_ns(),
    Members = [spawn_link(fun() -> take_turns(Turns), Parent ! {self(), Turns} end) || _ <- lists:seq(1, Processes)],
    Total = lists:sum([receive {Member, Taken} -> Taken end || Member <- Members]),
    Taken = bench:now_ns() - Start,
    bench:check(Total =:= Turns * Processes, "~p turns", [Total]),
    Taken / Total.

main(Arguments) ->
    {Processes, Row} = case Arguments of
        ["1000"] -> {1000, "yield1000"};
        [Count] -> {list_to_integer(Count), if Count =:= "2" -> "switch"; true -> "yield1000" end}
    end,
    bench:samples(Row, 1, "ns", 5, fun() -> measure(Processes) end).
