%% What the Erlang programs share: samples and checks, as in bench.h. A program is a module with a function main, which
%% gets the arguments of its twin in C.
-module(bench).
-export([run/1, threads/1, sample/4, samples/5, check/3, now_ns/0, leave_out/1]).

%% Runs the program in a process of its own: the one that Erlang starts with is notified of the end of each process
%% that is linked to it.
run([Name | Arguments]) ->
    {_, Monitor} = spawn_monitor(fun() -> (list_to_atom(Name)):main(Arguments) end),
    receive
        {'DOWN', Monitor, _, _, normal} -> halt(0);
        {'DOWN', Monitor, _, _, Reason} -> check(false, "~p", [Reason])
    end.

threads([]) -> 1;
threads([Threads | _]) -> list_to_integer(Threads).

sample(Row, Threads, Unit, Value) ->
    io:format("~s\terlang\t~b\t~s\t~.3f~n", [Row, Threads, Unit, float(Value)]).

%% A measurement that takes one sample takes seconds; it needs no warm-up.
samples(Row, Threads, Unit, Count, Measure) ->
    _ = if Count > 1 -> Measure(); true -> ok end,
    [sample(Row, Threads, Unit, Measure()) || _ <- lists:seq(1, Count)].

check(true, _, _) -> ok;
check(false, Format, Arguments) ->
    io:format(standard_error, "wrong: " ++ Format ++ "~n", Arguments),
    halt(1).

leave_out(Why) ->
    io:format(standard_error, "left out: ~s~n", [Why]),
    halt(77).

now_ns() -> erlang:monotonic_time(nanosecond).
