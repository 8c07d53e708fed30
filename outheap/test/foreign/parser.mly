%token <Obj.t> ITEM
%token END
%start list
%type <Obj.t list> list
%%
list: ITEM list { $1 :: $2 } | END { [] };
