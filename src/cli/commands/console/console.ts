import { hostname } from "node:os"
import { Effect, Option, Result } from "effect"
import { Command, Flag } from "effect/cli"
import { isLoopback } from "../../../api/addresses.ts"
import { readOrigin } from "../../../api/cors.ts"
import type { ApiOptions } from "../../../api/server.ts"
import { requireAccess } from "../../../broker/access.ts"
import type { BrokerOptions } from "../../../broker/connection.ts"
import { readLayout } from "../../../broker/installed.ts"
import type { ListenAddress } from "../../../metrics/listen.ts"
import { listenText, readListenAddress } from "../../../metrics/listen.ts"
import { operatorNamed } from "../../../operations/caller.ts"
import { JobCounter } from "../../../operations/jobs/job-queue.ts"
import { parseNetwork } from "../../../policy/address.ts"
import { consoleFiles } from "../../../policy/open-files.ts"
import { DeliveryLog } from "../../../projection/delivery-log.ts"
import type { ProjectionOptions } from "../../../projection/projection.ts"
import { serveProjection } from "../../../projection/remote-log.ts"
import {
  listenFlag,
  notListening,
  readTls,
  tlsFlags,
  warnOfCertificate
} from "../../flags/listen-flags.ts"
import { startTraces, tracesOtlpFlag } from "../../flags/metrics-flags.ts"
import { isSet, maybe, repeated } from "../../flags/shared.ts"
import { giveBackMemory, setCollector } from "../../memory.ts"
import { openFileLimit, serverConnections } from "../../open-files.ts"
import { refusal } from "../../refused.ts"
import {
  brokerOptions,
  connectedWithAccessToServe,
  connectionForRequests,
  report
} from "../../root-command.ts"
import { untilStopped } from "../../terminal/signals.ts"
import { auditSinceFlag, startAudit } from "./audit.ts"
import { projectionFlags } from "./projection.ts"

/** What a console can do. */
const roleNames = ["api", "ui", "projection", "audit"] as const
type ConsoleRole = (typeof roleNames)[number]

export const defaultListen = "127.0.0.1:4280"

/** Parses `127.0.0.1:4280` or `[::1]:4280`. All addresses must be named: `0.0.0.0:4280`. */
export const readListen = (text: string): ListenAddress | undefined =>
  text.startsWith(":") ? undefined : readListenAddress(text)

const readRoles = (text: string): Option.Option<ReadonlyArray<ConsoleRole>> => {
  const names = text.split(",").map((name) => name.trim())
  const roles = roleNames.filter((role) => names.includes(role))
  return names.every((name) => roles.some((role) => role === name))
    ? Option.some(roles)
    : Option.none()
}

const isPublicUrl = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { pathname, protocol } = new URL(text)
  return (protocol === "http:" || protocol === "https:") && pathname === "/"
}

/** Another address than the usual one, for whoever has to choose. */
export const otherListen = "127.0.0.1:4281"

/** Returns the address that clients use. */
export const addressOf = (
  { host, publicUrl, tls }: Pick<ApiOptions, "host" | "publicUrl" | "tls">,
  port: number
): string =>
  publicUrl?.replace(/\/$/, "") ??
  `${tls === undefined ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${port}`

/** Returns what a console says once it answers: where it listens, and the name that people know it by. */
export const readyText = ({
  address,
  listens,
  login
}: {
  readonly address: string
  readonly listens: string
  readonly login?: string
}): string => {
  const place = listens === address ? "" : `, for requests to ${address}`
  const link = login === undefined ? "" : `\nlog in to its pages, once and within an hour: ${login}`
  return `the console answers at ${listens}${place}${link}`
}

/** Returns a name of this machine and process. */
const ownName = (): string => `${hostname()}-${process.pid}`

/** Serves the API. Returns its address. */
const serveRoleApi = Effect.fnUntraced(function* (
  options: ApiOptions,
  listen: string,
  broker: BrokerOptions
) {
  yield* requireAccess
  const { serveApi } = yield* Effect.promise(() => import("../../../api/server.ts"))
  const { Turns } = yield* Effect.promise(() => import("../../../api/turns.ts"))
  const { auditsInThreads } = yield* Effect.promise(() => import("./audit-job.ts"))
  const { runJobs } = yield* Effect.promise(() => import("../../../operations/jobs/job-runner.ts"))
  const turns = yield* Turns.make
  const countJobs = yield* runJobs(ownName(), turns.schedulerOfTenant).pipe(auditsInThreads(broker))
  const { startNatsService } = yield* Effect.promise(
    () => import("../../../service/nats-service.ts")
  )
  const { app, port, refused } = yield* serveApi({ ...options, turns }).pipe(
    Effect.provideService(JobCounter, countJobs),
    Effect.catchTag("ListenRefused", (error) => notListening(error, listen, otherListen))
  )
  yield* startNatsService(app, { refused, broker: yield* connectionForRequests })
  const address = addressOf(options, port)
  const listens = addressOf({ ...options, publicUrl: undefined }, port)
  // Who reads what is printed here is on this machine, as are those who can ask it.
  const isOwn = options.hasPages === true && isLoopback(options.host) && !options.publicUrl
  const login = isOwn ? yield* makeLoginLink(ownName()) : undefined
  return { address, listens, ...(login === undefined ? {} : { login: `${address}${login}` }) }
})

/** Returns path and fragment of a link that logs an operator in; undefined if none can be made. */
export const makeLoginLink = (name: string) =>
  Effect.gen(function* () {
    const { LiveTokens } = yield* Effect.promise(
      () => import("../../../operations/tokens/token-store.ts")
    )
    const { makeOperatorLink } = yield* Effect.promise(
      () => import("../../../operations/tokens/sessions.ts")
    )
    const made = makeOperatorLink("the login of a console", operatorNamed(name))
    return (yield* Effect.provide(made, LiveTokens.layer)).path
  }).pipe(
    Effect.catch(({ message }) =>
      Effect.as(Effect.logWarning("no link for logging in could be made", { message }), undefined)
    )
  )

/**
 * Growth of the old generation before it is collected, percent. Most that a console's requests make is
 * garbage when they are answered: twice the live heap would be a third of its memory, and asking it
 * takes no more of the cores with less.
 */
const heapGrowthPercent = 30

const serve = Effect.fnUntraced(function* (
  roles: ReadonlyArray<ConsoleRole>,
  options: ApiOptions,
  listen: string,
  projection: Omit<ProjectionOptions, "broker">,
  auditSinceMs: number,
  tracesOtlp: string | undefined
) {
  setCollector(heapGrowthPercent)
  // Says what to do where there is no installation, or an older one.
  yield* readLayout
  const broker = yield* brokerOptions
  yield* startTraces(tracesOtlp, ownName())
  const log = roles.includes("projection")
    ? yield* serveProjection({ ...projection, broker })
    : undefined
  if (roles.includes("audit")) yield* startAudit(broker, ownName(), auditSinceMs)
  const api = serveRoleApi(options, listen, broker)
  const served = roles.includes("api")
    ? yield* log === undefined ? api : Effect.provideService(api, DeliveryLog, log)
    : undefined
  giveBackMemory()
  yield* Effect.ignore(
    report(
      { event: "ready", ...served, roles },
      served !== undefined
        ? readyText(served)
        : log !== undefined
          ? `the projection runs, with its files in ${projection.data}`
          : "the audit runs"
    )
  )
  return yield* Effect.never.pipe(
    Effect.onInterrupt(() => Effect.logInfo("stopping; requests in flight are answered first"))
  )
}, Effect.scoped)

/** Serves the HTTP API until it is stopped. */
export const console = Command.make(
  "console",
  {
    listen: listenFlag("Where it listens; port 0 takes a free one", defaultListen, readListen),
    publicUrl: maybe(
      Flag.String("public-url").pipe(
        Flag.withMetavar("URL"),
        Flag.withDescription("The address that clients know it by (default: where it listens)"),
        Flag.filter(
          isPublicUrl,
          () => "must be a URL without a path, such as https://petrel.example"
        )
      )
    ),
    roles: Flag.String("roles").pipe(
      Flag.withMetavar("ROLES"),
      Flag.withDescription(
        "What it does: api, ui (pages for browsers, with api), projection (the log of deliveries), audit (whether every event reached every endpoint), or several of them (default: all)"
      ),
      Flag.withDefault(roleNames.join(",")),
      Flag.filterMap(
        readRoles,
        () => "must be api, ui, projection, audit or several of them with commas between"
      )
    ),
    ...projectionFlags,
    auditSince: auditSinceFlag,
    ...tlsFlags,
    behindProxy: isSet("behind-proxy", "A proxy in front of it ends TLS; needs --public-url"),
    trustedProxy: repeated(
      "trusted-proxy",
      "NETWORK",
      "A proxy whose X-Forwarded-For names the client of a request: an address, or a network such as 10.0.0.0/8; may be repeated"
    ),
    corsOrigin: repeated(
      "cors-origin",
      "ORIGIN",
      "An origin whose pages may ask the API from a browser, such as https://app.example.com; may be repeated (default: none)"
    ),
    tracesOtlp: tracesOtlpFlag
  },
  Effect.fnUntraced(function* (given) {
    const { behindProxy, cert, data, keep, key, listen: at, maxBytes, publicUrl, roles } = given
    const listen = listenText(at)
    const tls = readTls(cert, key)
    if (Result.isFailure(tls)) return yield* refusal(tls.failure)
    if (roles.includes("ui") && !roles.includes("api"))
      return yield* refusal(["--roles ui needs api: the pages ask it"])
    if (behindProxy && publicUrl === undefined)
      return yield* refusal([
        "--behind-proxy needs --public-url: the name that requests of the proxy have"
      ])
    if (!isLoopback(at.host) && tls.success === undefined && !behindProxy)
      return yield* refusal([
        `tokens would travel to ${listen} for everybody to read: listen on 127.0.0.1, give --tls-cert and --tls-key, or say --behind-proxy where a proxy in front ends TLS`
      ])
    const proxies = Result.all(given.trustedProxy.map(parseNetwork))
    if (Result.isFailure(proxies))
      return yield* refusal([`--trusted-proxy ${proxies.failure.message}`])
    const origins = given.corsOrigin.map((text) => [text, readOrigin(text)] as const)
    const wrong = origins.find(([, origin]) => origin === undefined)
    if (wrong !== undefined)
      return yield* refusal([
        `--cors-origin ${wrong[0]} is not an origin: name one as browsers do, such as https://app.example.com, with its port if it has one, without a path, and without *`
      ])
    yield* warnOfCertificate(tls.success)
    const { maxConnections } = yield* Effect.promise(
      () => import("../../../api/live-connections.ts")
    )
    const connections = roles.includes("api")
      ? yield* serverConnections(maxConnections, consoleFiles, { files: openFileLimit(), parts: 1 })
      : {}
    const corsOrigins = origins.flatMap(([, origin]) => origin ?? [])
    const projection = { data, keepMs: keep, maxBytes, replacesOther: given.replaceLog }
    yield* serve(
      roles,
      {
        ...at,
        ...connections,
        publicUrl,
        hasPages: roles.includes("ui"),
        tls: tls.success,
        trustedProxies: proxies.success,
        corsOrigins
      },
      listen,
      projection,
      given.auditSince,
      given.tracesOtlp
    ).pipe(Effect.provide(connectedWithAccessToServe), untilStopped)
  })
).pipe(
  Command.withDescription(
    "Serve the HTTP API, keep the log of deliveries, and audit what happens, until told to stop"
  ),
  Command.withExamples([
    { command: "petrel console" },
    {
      command:
        "petrel console --listen 0.0.0.0:443 --tls-cert tls.crt --tls-key tls.key --public-url https://petrel.example"
    }
  ])
)
