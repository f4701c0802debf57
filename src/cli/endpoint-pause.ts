import { Clock, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { pauseEndpoint, resumeEndpoint } from "../endpoints/endpoint-state.ts"
import { byFlag } from "./asked-by.ts"
import { endpointArgument } from "./endpoint-flags.ts"
import { endpointJson, stateText } from "./endpoint-view.ts"
import { connected, report } from "./root-command.ts"

export const pause = Command.make(
  "pause",
  {
    name: endpointArgument,
    reason: Flag.String("reason").pipe(
      Flag.withMetavar("TEXT"),
      Flag.withDescription("Told in the history"),
      Flag.optional
    ),
    by: byFlag
  },
  Effect.fnUntraced(function* ({ by, name: { id, tenant }, reason }) {
    const stored = yield* pauseEndpoint(
      { tenant, endpoint: id },
      Option.getOrUndefined(reason),
      by
    ).pipe(Effect.provide(connected))
    const now = yield* Clock.currentTimeMillis
    yield* report(
      { ...endpointJson(stored, false), changed: stored.changed },
      stored.changed
        ? `${tenant}/${id} is paused: its events wait until \`petrel endpoint resume ${tenant}/${id}\``
        : `${tenant}/${id} is so already: ${stateText(stored.endpoint, now)}`
    )
  })
).pipe(
  Command.withDescription("Keep an endpoint's events back until it is resumed"),
  Command.withExamples([{ command: "petrel endpoint pause acme/billing --reason maintenance" }])
)

export const resume = Command.make(
  "resume",
  { name: endpointArgument, by: byFlag },
  Effect.fnUntraced(function* ({ by, name: { id, tenant } }) {
    const stored = yield* resumeEndpoint({ tenant, endpoint: id }, by).pipe(
      Effect.provide(connected)
    )
    const now = yield* Clock.currentTimeMillis
    const state = stateText(stored.endpoint, now)
    yield* report(
      { ...endpointJson(stored, false), changed: stored.changed },
      stored.changed
        ? `${tenant}/${id} is resumed: ${state}`
        : `${tenant}/${id} is not paused: ${state}`
    )
  })
).pipe(Command.withDescription("Let a paused endpoint's events go on"))
