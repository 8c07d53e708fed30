(* SPDX-License-Identifier: MIT *)
(* The rooms of the house, under one interface: see outheap_linear.mli. *)
include Outheap_linear__contents

exception Moved = Outheap_linear__raw.Moved
exception Borrowed = Outheap_linear__raw.Borrowed

let poison = Outheap_linear__raw.poison

module List = Outheap_linear__chain.List
module Queue = Outheap_linear__chain.Queue

type ('k, 'v) tree = ('k, 'v) Outheap_linear__tree.tree =
  | Empty
  | Red of ('k, 'v) tree * 'k * 'v * ('k, 'v) tree
  | Black of ('k, 'v) tree * 'k * 'v * ('k, 'v) tree

module type KEY = Outheap_linear__map.KEY

module Map = Outheap_linear__map

module Set = struct
  module Make = Outheap_linear__map.Set
end

module type HASHED = Outheap_linear__table.HASHED

module Table = Outheap_linear__table
module Cells = Outheap_linear__cells
