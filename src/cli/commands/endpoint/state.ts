import { Clock, Effect } from "effect"
import { Command } from "effect/cli"
import { endpointLabel } from "../../../domain/endpoint.ts"
import { jsonOf } from "../../../domain/timestamp.ts"
import {
  disableEndpoint,
  EndpointState,
  enableEndpoint,
  pauseEndpoint,
  resumeEndpoint
} from "../../../operations/endpoints/change-state.ts"
import { byFlag, endpointArgument, textFlag } from "../../flags/shared.ts"
import { Refused } from "../../refused.ts"
import { connected, report } from "../../root-command.ts"
import { stateText } from "./view.ts"

const encode = jsonOf(EndpointState)

/** Prints an endpoint's state: one sentence if it was changed, another if it was so already. */
const reportState = Effect.fnUntraced(function* (
  after: EndpointState,
  changed: (state: string) => string,
  unchanged: (state: string) => string
) {
  const state = stateText(after, yield* Clock.currentTimeMillis)
  const says = after.changed ? changed(state) : unchanged(state)
  yield* report(encode(after), `${endpointLabel(after)} ${says}`)
})

export const pause = Command.make(
  "pause",
  {
    name: endpointArgument,
    reason: textFlag("reason", "TEXT", "Why, for the history"),
    by: byFlag
  },
  Effect.fnUntraced(function* ({ by, name, reason }) {
    const after = yield* pauseEndpoint(name, { reason }, by).pipe(Effect.provide(connected))
    yield* reportState(
      after,
      () => `is paused: its events wait until \`petrel endpoint resume ${endpointLabel(name)}\``,
      (state) => `is so already: ${state}`
    )
  })
).pipe(
  Command.withDescription("Hold an endpoint's deliveries back until it is resumed"),
  Command.withExamples([{ command: "petrel endpoint pause acme/billing --reason maintenance" }])
)

export const resume = Command.make(
  "resume",
  { name: endpointArgument, by: byFlag },
  Effect.fnUntraced(function* ({ by, name }) {
    const after = yield* resumeEndpoint(name, by).pipe(Effect.provide(connected))
    yield* reportState(
      after,
      (state) => `is resumed: ${state}`,
      (state) => `is neither paused nor suspended: ${state}`
    )
  })
).pipe(Command.withDescription("Resume the deliveries of a paused or suspended endpoint"))

export const enable = Command.make(
  "enable",
  { name: endpointArgument, by: byFlag },
  Effect.fnUntraced(function* ({ by, name }) {
    const after = yield* enableEndpoint(name, by).pipe(Effect.provide(connected))
    if (after.suspended !== undefined)
      return yield* new Refused({
        message: `${endpointLabel(name)} is suspended, not disabled: \`petrel endpoint resume ${endpointLabel(name)}\` sends its deliveries`
      })
    yield* reportState(
      after,
      () => "is enabled",
      () => "is enabled already"
    )
  })
).pipe(Command.withDescription("Put a disabled endpoint back to work"))

export const disable = Command.make(
  "disable",
  {
    name: endpointArgument,
    reason: textFlag("reason", "TEXT", "Why, for the history (default: by hand)"),
    by: byFlag
  },
  Effect.fnUntraced(function* ({ by, name, reason }) {
    const after = yield* disableEndpoint(name, { reason }, by).pipe(Effect.provide(connected))
    yield* reportState(
      after,
      () => "is disabled: it gets no events, and its waiting deliveries end as dead letters",
      (state) => `is so already: ${state}`
    )
  })
).pipe(Command.withDescription("Take an endpoint out of service"))
