import { Clock, Effect, Option, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { jsonOf } from "../../../domain/timestamp.ts"
import { isToken } from "../../../domain/token.ts"
import {
  discard as discardOne,
  listQuarantined,
  QuarantinedView,
  release as releaseOne,
  showQuarantined
} from "../../../operations/sources/manage-quarantine.ts"
import { bytesText, localTime, plural } from "../../../text/quantities.ts"
import { byFlag, textFlag } from "../../flags/shared.ts"
import { makeTable } from "../../format/screen.ts"
import { connected, petrel, report } from "../../root-command.ts"
import { print, remark } from "../../terminal/stdout.ts"

const encodeView = jsonOf(QuarantinedView)

const tenantArgument = Argument.String("TENANT").pipe(
  Argument.withDescription("Such as acme"),
  Argument.filterMap(
    (text) => (isToken(text) ? Option.some(text) : Option.none()),
    () => "must be 1 to 64 letters, digits, - or _ (and not a lone _)"
  )
)

const numberArgument = Argument.String("NUMBER").pipe(
  Argument.withDescription("As `petrel quarantine list` shows it"),
  Argument.withSchema(Schema.NumberFromString.check(Schema.isInt(), Schema.isGreaterThan(0)))
)

const headings = ["number", "source", "reason", "came", "bytes", "problem"]

const list = Command.make(
  "list",
  { tenant: tenantArgument },
  Effect.fnUntraced(function* ({ tenant }) {
    const { json } = yield* petrel
    const found = yield* Effect.provide(listQuarantined(tenant), connected)
    if (json) {
      for (const one of found) yield* print(JSON.stringify(encodeView(one)))
      return
    }
    if (found.length === 0) return yield* remark(`Nothing of ${tenant} is in quarantine.`)
    const now = yield* Clock.currentTimeMillis
    const rows = found.map((one) => [
      String(one.number),
      one.source,
      one.reason,
      localTime(one.at, now),
      String(one.bytes),
      one.problem
    ])
    yield* Effect.forEach(makeTable(headings).lines(rows), print)
  })
).pipe(Command.withDescription("List what came in for a tenant and is no event, oldest first"))

const show = Command.make(
  "show",
  { tenant: tenantArgument, number: numberArgument },
  Effect.fnUntraced(function* ({ number, tenant }) {
    const one = yield* Effect.provide(showQuarantined(tenant, number), connected)
    const now = yield* Clock.currentTimeMillis
    const rows = [
      ["source", one.source],
      ["reason", `${one.reason}: ${one.problem}`],
      ["came", `${localTime(one.at, now)}, ${bytesText(one.bytes)}`],
      ...(one.event === undefined ? [] : [["id", one.event]]),
      ...(one.type === undefined ? [] : [["type", one.type]]),
      ...Object.entries(one.headers ?? {})
    ].map(([name = "", text]) => `  ${name.padEnd(20)}${text}`)
    yield* report(
      encodeView(one),
      [
        `${number} of ${tenant}`,
        ...rows,
        "",
        Buffer.from(one.body ?? "", "base64").toString("utf8")
      ].join("\n")
    )
  })
).pipe(Command.withDescription("Show something in quarantine, and its bytes"))

const release = Command.make(
  "release",
  {
    tenant: tenantArgument,
    number: numberArgument,
    type: textFlag("type", "TYPE", "The event's type (default: what its provider says)"),
    by: byFlag
  },
  Effect.fnUntraced(function* ({ by, number, tenant, type }) {
    const released = yield* Effect.provide(releaseOne(tenant, number, type, by), connected)
    const [first] = released.events
    yield* report(
      released,
      `${number} is ${plural(released.events.length, "event")} now${first === undefined ? "" : `: ${released.source}.${first.type}`}`
    )
  })
).pipe(
  Command.withDescription("Let something in quarantine be an event"),
  Command.withExamples([
    { command: "petrel quarantine release acme 17" },
    { command: "petrel quarantine release acme 17 --type invoice.paid" }
  ])
)

const discard = Command.make(
  "discard",
  { tenant: tenantArgument, number: numberArgument, by: byFlag },
  Effect.fnUntraced(function* ({ by, number, tenant }) {
    const discarded = yield* Effect.provide(discardOne(tenant, number, by), connected)
    yield* report(encodeView(discarded), `${number} of ${tenant} is discarded`)
  })
).pipe(Command.withDescription("Remove something from quarantine for good"))

export const quarantine = Command.make("quarantine").pipe(
  Command.withDescription(
    "What came in and is no event: unreadable, or an id that has other bytes"
  ),
  Command.withSubcommands([list, show, release, discard])
)
