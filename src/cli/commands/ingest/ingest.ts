import { hostname } from "node:os"
import { Effect, Result } from "effect"
import { Command } from "effect/cli"
import { requireEventsOfIntake } from "../../../broker/survey-intake.ts"
import { GatewayCounts } from "../../../intake/gateway/counts.ts"
import { maxConnections, serveGateway } from "../../../intake/gateway/listen.ts"
import { listenText, readListenAddress } from "../../../metrics/listen.ts"
import { gatewayFiles } from "../../../policy/open-files.ts"
import { reconcileBySchedule } from "../../../reconcile/schedule.ts"
import { apiNetworkFlag, readApiNetworks } from "../../flags/api-flags.ts"
import {
  listenFlag,
  notListening,
  readTls,
  tlsFlags,
  warnOfCertificate
} from "../../flags/listen-flags.ts"
import { metricsFlags, serveNumbers } from "../../flags/metrics-flags.ts"
import { isSet } from "../../flags/shared.ts"
import { giveBackMemory, setCollector } from "../../memory.ts"
import { openFileLimit, serverConnections } from "../../open-files.ts"
import { refusal } from "../../refused.ts"
import { connectedToServe, report } from "../../root-command.ts"
import { untilStopped } from "../../terminal/signals.ts"

const defaultListen = "127.0.0.1:8088"

/** Growth of the old generation before it is collected, percent. */
const heapGrowthPercent = 50

export const ingest = Command.make(
  "ingest",
  {
    listen: listenFlag(
      "Where providers post; :8088 is all addresses, port 0 takes a free one",
      defaultListen,
      readListenAddress
    ),
    ...tlsFlags,
    once: isSet("check", "Only check whether it can listen, and stop"),
    metrics: metricsFlags.metrics,
    otlp: metricsFlags.otlp,
    allowNetwork: apiNetworkFlag
  },
  Effect.fnUntraced(function* ({ allowNetwork, cert, key, listen, metrics, once, otlp }) {
    const tls = readTls(cert, key)
    if (Result.isFailure(tls)) return yield* refusal(tls.failure)
    const networks = yield* readApiNetworks(allowNetwork)
    yield* warnOfCertificate(tls.success)
    const connections = yield* serverConnections(maxConnections, gatewayFiles, {
      files: openFileLimit(),
      parts: 1
    })
    const serve = Effect.gen(function* () {
      setCollector(heapGrowthPercent)
      yield* requireEventsOfIntake
      const counts = new GatewayCounts()
      let problems = (): ReadonlyArray<string> => ["the gateway has not started"]
      const metricsAt = yield* serveNumbers(
        { metrics, otlp },
        {
          ...{ kind: "gateway", id: hostname() },
          families: () => counts.families(),
          problems: () => problems()
        }
      )
      const gateway = yield* serveGateway({
        ...listen,
        tls: tls.success,
        counts,
        ...connections
      }).pipe(
        Effect.catchTag("ListenRefused", (error) =>
          notListening(error, listenText(listen), "127.0.0.1:8089")
        )
      )
      problems = gateway.problems
      const scheme = tls.success === undefined ? "http" : "https"
      const address = `${scheme}://${listenText({ ...listen, port: gateway.port })}`
      const reported = report(
        {
          address,
          ...(metricsAt === undefined ? {} : { metrics: metricsAt })
        },
        `webhooks come in on ${address}/in/<tenant>/<source>: \`petrel source list\` shows the sources`
      )
      // A gateway whose stdout nobody reads takes webhooks as well.
      yield* once ? reported : Effect.ignore(reported)
      if (once) return
      yield* reconcileBySchedule({
        networks,
        done: (source, { found, problem }) =>
          counts.reconciled(source, found, problem !== undefined)
      })
      giveBackMemory()
      return yield* Effect.never
    })
    yield* serve.pipe(Effect.scoped, Effect.provide(connectedToServe), untilStopped)
  })
).pipe(
  Command.withDescription("Receive webhooks from providers, until told to stop"),
  Command.withExamples([
    { command: "petrel ingest --listen :8088" },
    {
      command: "petrel ingest --listen 0.0.0.0:443 --tls-cert tls.crt --tls-key tls.key"
    }
  ])
)
