import { Option } from "effect"
import { Flag } from "effect/cli"

/** True for `sampled`. */
export const tracesFlag = Flag.String("traces").pipe(
  Flag.withMetavar("TRACES"),
  Flag.withDescription(
    "sampled: where an event's traceparent has the sampled flag, receivers get the attempt's span as parent; off: the publisher's (default: off)"
  ),
  Flag.withDefault("off"),
  Flag.filterMap(
    (text) => (text === "off" || text === "sampled" ? Option.some(text) : Option.none()),
    () => "must be off or sampled"
  ),
  Flag.map((text) => text === "sampled")
)
