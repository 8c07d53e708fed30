(* SPDX-License-Identifier: MIT *)
external fixpoint : (float -> float) -> float -> float = "fixpoint"
