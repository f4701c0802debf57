import { Effect, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { spanText } from "../../../history/span.ts"
import { RotatedEndpoint, rotateSecret } from "../../../operations/endpoints/endpoint-secrets.ts"
import { endpointLabel } from "../../../operations/endpoints/endpoint-settings.ts"
import { byFlag, endpointArgument } from "../../flags/shared.ts"
import { durationExpected, readDuration } from "../../flags/times.ts"
import { connected, report } from "../../root-command.ts"
import { endpointFlags } from "./flags.ts"
import { givenSecrets } from "./secrets.ts"
import { secretLines } from "./view.ts"

const encode = Schema.encodeSync(RotatedEndpoint)

const keepOldFlag = Flag.String("keep-old").pipe(
  Flag.withMetavar("DURATION"),
  Flag.withDescription(
    "How long the old secret signs too; 0s drops it at once (default: 24 hours)"
  ),
  Flag.withDefault("24 hours"),
  Flag.filterMap(
    (text) => Option.fromUndefinedOr(readDuration(text)),
    () => durationExpected
  )
)

const oneSignature =
  "GitHub style carries one signature, and the new secret makes it from now on: a receiver that does not know it yet refuses what comes"

const oldText = ({ secrets, sign, updatedAt: now }: RotatedEndpoint): string => {
  if (sign === "github") return ", which signs from now on"
  const lasting = Math.max(0, ...secrets.map(({ until = now }) => until - now))
  return lasting === 0
    ? "; the old one is gone"
    : `; the old one stays valid for ${spanText(lasting)}`
}

export const rotate = Command.make(
  "rotate",
  {
    name: endpointArgument,
    ...endpointFlags.secret,
    keepOld: keepOldFlag,
    by: byFlag
  },
  Effect.fnUntraced(function* ({ by, keepOld, name, ...flags }) {
    const { secret } = yield* givenSecrets({
      secret: flags,
      headers: { header: [], headerFile: undefined }
    })
    const rotated = yield* rotateSecret(name, { secret, keepOld }, by).pipe(
      Effect.provide(connected)
    )
    if (rotated.sign === "github") yield* Effect.logWarning(oneSignature)
    yield* report(
      encode(rotated),
      [`${endpointLabel(name)} has a new secret${oldText(rotated)}`, ...secretLines(rotated)].join(
        "\n"
      )
    )
  })
).pipe(
  Command.withDescription("Give an endpoint a new secret; the old one stays valid for a while")
)
