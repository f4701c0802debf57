import { Schema } from "effect"
import { Flag } from "effect/cli"
import { TypeFilter } from "../../../domain/type-filter.ts"
import { maybe } from "../../flags/shared.ts"

const decode = Schema.decodeUnknownOption(Schema.NonEmptyArray(TypeFilter))

/** `--types FILTERS`: event types as NATS wildcards, comma-separated. */
export const typesFlag = Flag.String("types").pipe(
  Flag.withMetavar("FILTERS"),
  Flag.withDescription(
    "Only these types: 'invoice.>,*.created' (default: those the endpoint wants)"
  ),
  Flag.filterMap(
    (text) => decode(text.split(",").map((filter) => filter.trim())),
    () => "must be event types such as 'invoice.>,*.created'"
  ),
  maybe
)
