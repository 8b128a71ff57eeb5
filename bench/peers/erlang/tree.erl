%% tree_width: N processes that end at once, and one that waits for their messages. tree_depth: a chain of N processes,
%% each of which starts the next one, and waits for it. Per process.
-module(tree).
-export([main/1]).

-define(PROCESSES, 200000).

wait(0) -> ok;
wait(Left) -> receive done -> wait(Left - 1) end.

wide(Width) ->
    Self = self(),
    [spawn_link(fun() -> Self ! done end) || _ <- lists:seq(1, Width)],
    wait(Width),
    Width.

chain(Parent, 0) -> Parent ! {depth, 0};
chain(Parent, Left) ->
    Self = self(),
    spawn_link(fun() -> chain(Self, Left - 1) end),
    receive {depth, Depth} -> Parent ! {depth, Depth + 1} end.

deep(Depth) ->
    chain(self(), Depth),
    receive {depth, Counted} -> Counted end.

measure(Tree, Size) ->
    Times = max(1, ?PROCESSES div Size),
    Start = bench:now_ns(),
    Count = lists:sum([Tree(Size) || _ <- lists:seq(1, Times)]),
    Taken = bench:now_ns() - Start,
    bench:check(Count =:= Times * Size, "~p processes", [Count]),
    Taken / Count.

main([Kind, Size]) ->
    Tree = case Kind of "width" -> fun wide/1; "depth" -> fun deep/1 end,
    bench:samples("tree_" ++ Kind, 1, "ns", 5, fun() -> measure(Tree, list_to_integer(Size)) end).
