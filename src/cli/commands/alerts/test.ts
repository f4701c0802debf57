import { Effect, Schema } from "effect"
import { Command } from "effect/cli"
import { TestAlert, testAlert } from "../../../operations/alerts/test-alert.ts"
import { byFlag } from "../../flags/shared.ts"
import { connected, report } from "../../root-command.ts"
import { tenantArgument } from "./thresholds.ts"

const encode = Schema.encodeSync(TestAlert)

const endpointsText = ({ endpoints, event, tenant }: TestAlert): ReadonlyArray<string> => {
  if (tenant === undefined)
    return [
      `No endpoint gets alerts about the system: name a tenant whose operational endpoints do, with \`petrel alerts thresholds --set '{"systemAlertsTo":"TENANT"}'\``
    ]
  if (endpoints.length === 0)
    return [
      `No endpoint of ${tenant} gets it: add one with \`petrel endpoint add ${tenant}/ops --operational --url URL\``
    ]
  return [
    ...endpoints.map(
      ({ held, id }) =>
        `Endpoint ${tenant}/${id}${held === undefined ? " gets it" : ` wants it and is ${held}`}`
    ),
    `What became of it: \`petrel delivery show ${event}.${endpoints[0]?.id ?? ""}\``
  ]
}

/** Sends a test alert. */
export const test = Command.make(
  "test",
  { tenant: tenantArgument, by: byFlag },
  Effect.fnUntraced(function* ({ by, tenant }) {
    const sent = yield* testAlert(tenant, by).pipe(Effect.provide(connected))
    const text = [
      `Sent a test alert about ${tenant ?? "the system"}, ${sent.alert.id}`,
      `Subject ${sent.subject}: whoever listens has got it`,
      ...endpointsText(sent)
    ]
    yield* report(encode(sent), text.join("\n"))
  })
).pipe(
  Command.withDescription(
    "Send a test alert on the ways that alerts about a tenant or the system go"
  ),
  Command.withExamples([
    { command: "petrel alerts test", description: "About the system" },
    { command: "petrel alerts test acme" }
  ])
)
