%% fib30: the 30th Fibonacci number with a process for fib(n - 1) and a call for fib(n - 2).
-module(fib30).
-export([main/1]).

fib(N) when N < 2 -> N;
fib(N) ->
    Parent = self(),
    Child = spawn_link(fun() -> Parent ! {self(), fib(N - 1)} end),
    Called = fib(N - 2),
    receive
        {Child, Value} -> Value + Called
    end.

measure() ->
    Start = bench:now_ns(),
    Value = fib(30),
    Taken = bench:now_ns() - Start,
    bench:check(Value =:= 832040, "fib(30) = ~p", [Value]),
    Taken / 1.0e6.

main(Arguments) ->
    bench:samples("fib30", bench:threads(Arguments), "ms", 1, fun measure/0).
