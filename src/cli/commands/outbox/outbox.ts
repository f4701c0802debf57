import { Duration, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { isToken, tokenExpected } from "../../../domain/token-rules.ts"
import { RelayFigures } from "../../../relay/figures.ts"
import { type OutboxRelayOptions, RelayState, relayOutbox } from "../../../relay/outbox-relay.ts"
import { metricsFlags, serveNumbers } from "../../flags/metrics-flags.ts"
import { durationFlag } from "../../flags/shared.ts"
import { connectedToServe, petrel } from "../../root-command.ts"
import { untilStopped } from "../../terminal/signals.ts"
import { print } from "../../terminal/stdout.ts"
import { namedDatabase, outboxFlags, projectDriver } from "./database.ts"
import { migrate } from "./migrate.ts"
import { forget, status } from "./reports.ts"
import { discard, list, release } from "./set-aside.ts"

const flags = {
  ...outboxFlags,
  keep: durationFlag(
    "keep",
    "How long published rows stay in the table, for `petrel audit --outbox` (default: 7d)",
    { least: 60_000, problem: "must be at least a minute" }
  ).pipe(Flag.withDefault(Duration.days(7)), Flag.map(Duration.toMillis)),
  poll: durationFlag(
    "poll",
    "How often it looks for rows, even without a notification (default: 1s)",
    { least: 10, problem: "must be at least 10ms" }
  ).pipe(Flag.withDefault(Duration.seconds(1)), Flag.map(Duration.toMillis)),
  name: Flag.String("name").pipe(
    Flag.withMetavar("NAME"),
    Flag.withDescription("Of the outbox, in alerts (default: of the database and the table)"),
    Flag.filter(isToken, () => tokenExpected),
    Flag.optional
  ),
  metrics: metricsFlags.metrics,
  otlp: metricsFlags.otlp
}

/** Returns a name for the outbox: one token, of the database and the table. */
export const nameOf = (url: string, base: string): string => {
  const database = decodeURIComponent(new URL(url).pathname.slice(1)) || "postgres"
  return `${database}-${base}`.replaceAll(/[^A-Za-z0-9_-]+/g, "-").slice(0, 64)
}

const said = {
  publishing: "publishes what the outbox has, and what comes",
  "standing-by": "stands by: another relay of this outbox publishes"
}

/** Publishes the rows of an outbox until it is stopped. */
export const outbox = Command.make(
  "outbox",
  flags,
  Effect.fnUntraced(function* ({ database, keep, metrics, name, otlp, poll, table }) {
    const { json } = yield* petrel
    const url = yield* namedDatabase(database)
    const driver = yield* projectDriver
    const id = Option.getOrElse(name, () => nameOf(url, table.base))
    const [figures, state] = [new RelayFigures(), new RelayState()]
    const relay = Effect.gen(function* () {
      const servedAt = yield* serveNumbers(
        { metrics, otlp },
        {
          ...{ kind: "outbox", id },
          families: () => figures.families(),
          problems: () => state.problems()
        }
      )
      const options: OutboxRelayOptions = {
        ...{ name: id, driver, url, table, keepMs: keep, pollMs: poll, figures },
        became: (now) => {
          const at = servedAt === undefined ? {} : { metrics: servedAt }
          const where = servedAt === undefined ? "" : `; its numbers are at ${servedAt}`
          const text = `outbox ${id} ${said[now]}${where}`
          return Effect.ignore(
            print(json ? JSON.stringify({ event: now, outbox: id, ...at }) : text)
          )
        }
      }
      return yield* relayOutbox(options, state)
    }).pipe(
      Effect.onInterrupt(() => Effect.logInfo("stopping; what is under way is finished first"))
    )
    yield* Effect.scoped(relay).pipe(Effect.provide(connectedToServe), untilStopped)
  })
).pipe(
  Command.withDescription(
    "Publish the events that transactions have stored in an outbox, until it is stopped. Of several, one publishes and the others stand by."
  ),
  Command.withShortDescription("Publish the events of an outbox in PostgreSQL"),
  Command.withExamples([
    { command: "petrel outbox migrate --database postgres://127.0.0.1/shop" },
    { command: "petrel outbox --database postgres://127.0.0.1/shop --keep 30d" }
  ]),
  Command.withSubcommands([migrate, list, release, discard, status, forget])
)
