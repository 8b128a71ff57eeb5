%% timers: N processes, each of which sleeps four times up to a quarter of a second, at random: the processor time of a
%% sleep, as N timers are pending at a time.
%%
%% Unfair: a timer is exact to a millisecond.
-module(timers).
-export([main/1]).

-define(SLEEPS, 4).

nap(Done, 0) -> Done ! woken;
nap(Done, Left) ->
    receive after rand:uniform(251) - 1 -> nap(Done, Left - 1) end.

wait(0) -> ok;
wait(Left) -> receive woken -> wait(Left - 1) end.

main([Count]) ->
    Processes = list_to_integer(Count),
    Self = self(),
    {Before, _} = statistics(runtime),
    [spawn_link(fun() -> nap(Self, ?SLEEPS) end) || _ <- lists:seq(1, Processes)],
    wait(Processes),
    {After, _} = statistics(runtime),
    bench:sample("timers", 1, "ns", max(0.001, (After - Before) * 1.0e6 / (Processes * ?SLEEPS))).
