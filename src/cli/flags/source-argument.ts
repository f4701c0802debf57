import { Option } from "effect"
import { Argument } from "effect/cli"
import { readSourceLabel } from "../../domain/source.ts"

/** The name of a source: `<tenant>/<source>`. */
export const sourceArgument = Argument.String("TENANT/SOURCE").pipe(
  Argument.withDescription("Such as acme/stripe"),
  Argument.filterMap(
    (text) => Option.fromUndefinedOr(readSourceLabel(text)),
    () =>
      "must be a tenant and a source such as acme/stripe, each 1 to 64 letters, digits, - or _ (and not outbox or petrel)"
  )
)
