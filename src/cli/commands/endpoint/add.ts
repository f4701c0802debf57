import { Effect, Result, Schema, Struct } from "effect"
import { Command } from "effect/cli"
import { endpointLabel } from "../../../operations/endpoints/endpoint-settings.ts"
import { AddedEndpoint, addEndpoint } from "../../../operations/endpoints/write-endpoint.ts"
import { byFlag, endpointArgument } from "../../flags/shared.ts"
import { refusal } from "../../refused.ts"
import { connected, report } from "../../root-command.ts"
import { endpointFlags, readSettings } from "./flags.ts"
import { givenSecrets } from "./secrets.ts"
import { typesText } from "./setting-texts.ts"
import { secretLines } from "./view.ts"

/** Cautions go to the log. */
const encode = Schema.encodeSync(AddedEndpoint.mapFields(Struct.omit(["cautions"])))

export const add = Command.make(
  "add",
  { name: endpointArgument, ...endpointFlags, by: byFlag },
  Effect.fnUntraced(function* ({ by, name, ...flags }) {
    const read = readSettings({ ...flags, ...(yield* givenSecrets(flags)) })
    const problems = [
      ...(flags.url === undefined ? ["--url is missing"] : []),
      ...(Result.isFailure(read) ? read.failure : [])
    ]
    if (Result.isFailure(read) || read.success.url === undefined) return yield* refusal(problems)
    const settings = { ...read.success, url: read.success.url }
    const { cautions, ...added } = yield* addEndpoint(name, settings, by).pipe(
      Effect.provide(connected)
    )
    for (const caution of cautions) yield* Effect.logWarning(caution)
    yield* report(
      encode(added),
      [
        `${endpointLabel(name)} is added: ${typesText(added)} to ${added.url}`,
        ...secretLines(added)
      ].join("\n")
    )
  })
).pipe(
  Command.withDescription("Add an endpoint"),
  Command.withExamples([
    { command: "petrel endpoint add acme/billing --url https://example.com/hooks" },
    {
      command:
        "petrel endpoint add acme/crm --url https://example.com/h --types 'invoice.>' --retry stripe"
    },
    {
      command:
        "petrel endpoint add acme/shop --url https://example.com/s --secret-file s.secret --header-file s.headers"
    }
  ])
)
