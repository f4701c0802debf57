import { X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { hostname } from "node:os"
import { Duration, Effect, Option, Result } from "effect"
import { Command, Flag } from "effect/cli"
import type { Role } from "../../../cluster/roster.ts"
import { type AnswerLevel, answerLevels } from "../../../delivery/http/kept-answer.ts"
import { defaultLoad } from "../../../delivery/scheduling/capacity-pool.ts"
import { isToken } from "../../../domain/token.ts"
import { bothReaches, parseNetwork, type Reach } from "../../../policy/address.ts"
import { minInFlight } from "../../../policy/open-files.ts"
import { bytesExpected, bytesText, readBytes } from "../../../text/quantities.ts"
import type { WorkerOptions } from "../../../worker/worker.ts"
import {
  type MetricsChoice,
  metricsFlags,
  startMetrics,
  tracesFlag
} from "../../flags/metrics-flags.ts"
import { durationFlag, repeated } from "../../flags/shared.ts"
import { giveBackMemory, setCollector } from "../../memory.ts"
import { openFileLimit, workerLoad } from "../../open-files.ts"
import { refusal } from "../../refused.ts"
import { connectedToServe, report } from "../../root-command.ts"
import { untilStopped } from "../../terminal/signals.ts"

/**
 * The destinations that a worker's requests may reach: for all tenants, and additional ones by
 * tenant.
 */
interface WorkerReach {
  readonly everyone: Reach
  readonly tenants: ReadonlyMap<string, Reach>
}

const nothing: Reach = { networks: [], ports: [] }

/** `acme=10.0.0.0/8` applies to that tenant, `10.0.0.0/8` to all. */
const divided = (text: string): { readonly tenant: string | undefined; readonly value: string } => {
  const at = text.indexOf("=")
  return at < 0
    ? { tenant: undefined, value: text }
    : { tenant: text.slice(0, at), value: text.slice(at + 1) }
}

const readNetwork = (text: string): Result.Result<Reach, string> =>
  Result.mapBoth(parseNetwork(text), {
    onSuccess: (network) => ({ ...nothing, networks: [network] }),
    onFailure: ({ message }) => message
  })

const readPort = (text: string): Result.Result<Reach, string> => {
  if (text === "any") return Result.succeed({ ...nothing, ports: "any" })
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  return port >= 1 && port <= 65_535
    ? Result.succeed({ ...nothing, ports: [port] })
    : Result.fail(`${JSON.stringify(text)} must be a port from 1 to 65535, or any`)
}

/**
 * Parses `--allow-network` and `--allow-port`. Fails with the problems of all invalid values.
 *
 * @param networks as `CIDR` or `TENANT=CIDR`.
 * @param ports as `PORT` or `any`, optionally prefixed with `TENANT=`.
 */
export const readReach = (
  networks: ReadonlyArray<string>,
  ports: ReadonlyArray<string>
): Result.Result<WorkerReach, ReadonlyArray<string>> => {
  const problems: Array<string> = []
  const tenants = new Map<string, Reach>()
  let everyone = nothing
  const take = (
    flag: string,
    text: string,
    read: (value: string) => Result.Result<Reach, string>
  ) => {
    const { tenant, value } = divided(text)
    if (tenant !== undefined && !isToken(tenant)) {
      problems.push(
        `${flag} ${JSON.stringify(text)} must name a tenant before the =: 1 to 64 letters, digits, - or _ (and not a lone _)`
      )
      return
    }
    const reach = read(value)
    if (Result.isFailure(reach)) problems.push(`${flag} ${reach.failure}`)
    else if (tenant === undefined) everyone = bothReaches(everyone, reach.success)
    else tenants.set(tenant, bothReaches(tenants.get(tenant) ?? nothing, reach.success))
  }
  for (const text of networks) take("--allow-network", text, readNetwork)
  for (const text of ports) take("--allow-port", text, readPort)
  return problems.length === 0 ? Result.succeed({ everyone, tenants }) : Result.fail(problems)
}

const minBytes = 16 * 1024 * 1024

const roleNames: ReadonlyArray<Role> = ["router", "deliver"]

/** Returns an id of this machine and process, as one token. */
const ownId = (): string => {
  const host = hostname()
    .replaceAll(/[^A-Za-z0-9_-]+/g, "-")
    .slice(0, 48)
  return `${host}-${process.pid}`
}

const readRoles = (text: string): Option.Option<ReadonlyArray<Role>> => {
  const names = text.split(",").map((name) => name.trim())
  const roles = roleNames.filter((role) => names.includes(role))
  return names.length > 0 && names.every((name) => roles.some((role) => role === name))
    ? Option.some(roles)
    : Option.none()
}

/** Parses `--answers`: a level for all tenants, or `TENANT=LEVEL`. The last one given applies. */
const readAnswers = (
  given: ReadonlyArray<string>
): Result.Result<(tenant: string) => AnswerLevel, ReadonlyArray<string>> => {
  const levels = new Map<string | undefined, AnswerLevel>()
  const problems: Array<string> = []
  for (const text of given) {
    const equals = text.lastIndexOf("=")
    const tenant = equals === -1 ? undefined : text.slice(0, equals)
    const level = answerLevels.find((name) => name === text.slice(equals + 1))
    if (level === undefined || (tenant !== undefined && !isToken(tenant)))
      problems.push(
        `--answers ${JSON.stringify(text)} must be none, status, headers or body, or a tenant's such as acme=status`
      )
    else levels.set(tenant, level)
  }
  const all = levels.get(undefined) ?? "body"
  return problems.length > 0
    ? Result.fail(problems)
    : Result.succeed((tenant) => levels.get(tenant) ?? all)
}

const shareText = (id: string, partitions: ReadonlyArray<number>): string =>
  partitions.length === 0
    ? `worker ${id} has nothing to deliver: there are more workers than partitions`
    : `worker ${id} delivers (${partitions.length === 1 ? "partition" : "partitions"} ${partitions.join(", ")})`

const isCertificate = (pem: string): boolean => {
  try {
    return new X509Certificate(pem).raw.length > 0
  } catch {
    return false
  }
}

/** Reads certificates. Fails with the reason if the file is unusable. */
const readAuthority = (path: string): Result.Result<string, string> =>
  Result.try({
    try: () => readFileSync(path, "utf8"),
    catch: (error) => `cannot be read: ${error instanceof Error ? error.message : error}`
  }).pipe(
    Result.filterOrFail(isCertificate, () => "must be a file with certificates in PEM format"),
    Result.mapError((problem) => `--receiver-ca ${JSON.stringify(path)} ${problem}`)
  )

/**
 * Runs a worker until it is stopped. Reports on stdout when it has started and is visible to the
 * other workers, and when it first delivers for all partitions of its share.
 */
const serve = Effect.fnUntraced(function* (
  options: Omit<WorkerOptions, "metrics">,
  choice: MetricsChoice
) {
  setCollector()
  const { id, roles } = options
  const { metrics, servedAt, started } = yield* startMetrics(choice, id)
  const { startWorker } = yield* Effect.promise(() => import("../../../worker/worker.ts"))
  const { offerWorkerFigures } = yield* Effect.promise(
    () => import("../../../worker/worker-service.ts")
  )
  const worker = yield* startWorker({ ...options, metrics, beforeJoining: giveBackMemory })
  started(worker.problems)
  yield* offerWorkerFigures(worker, options, metrics)
  const delivers = roles.includes("deliver")
  const does = delivers ? "" : ": it routes events and delivers none"
  yield* Effect.ignore(
    report(
      {
        ...{ event: "ready", worker: id, roles },
        ...(servedAt === undefined ? {} : { metrics: servedAt })
      },
      `worker ${id} is ready${does}${servedAt === undefined ? "" : `; its numbers are at ${servedAt}`}`
    )
  )
  const first = Effect.flatMap(worker.delivering, (partitions) =>
    Effect.ignore(
      report({ event: "delivering", worker: id, partitions }, shareText(id, partitions))
    )
  )
  if (delivers) yield* Effect.forkScoped(first)
  return yield* worker.refused.pipe(
    Effect.onInterrupt(() => Effect.logInfo("stopping; what is in flight is finished first"))
  )
}, Effect.scoped)

const workerFlags = {
  id: Flag.String("id").pipe(
    Flag.withMetavar("ID"),
    Flag.withDescription(
      "Its name in history and logs; must be unique (default: host and process)"
    ),
    Flag.filterMap(
      (text) => (isToken(text) ? Option.some(text) : Option.none()),
      () => "must be 1 to 64 letters, digits, - or _ (and not a lone _)"
    ),
    Flag.optional
  ),
  roles: Flag.String("roles").pipe(
    Flag.withMetavar("ROLES"),
    Flag.withDescription("router, deliver or both (default: router,deliver)"),
    Flag.withDefault("router,deliver"),
    Flag.filterMap(readRoles, () => "must be router, deliver or router,deliver")
  ),
  allowNetwork: repeated(
    "allow-network",
    "[TENANT=]CIDR",
    "A private network that requests may go to, at any port, such as 10.1.0.0/16, or acme=10.1.0.0/16 for one tenant's; may be repeated"
  ),
  allowPort: repeated(
    "allow-port",
    "[TENANT=]PORT",
    "A port of public addresses that requests may go to besides 443 and 80, or any; may be repeated"
  ),
  receiverCa: Flag.String("receiver-ca").pipe(
    Flag.withMetavar("FILE"),
    Flag.withDescription(
      "Certificates (PEM) of an authority of your own that vouches for receivers, and not for the broker"
    ),
    Flag.optional
  ),
  answers: repeated(
    "answers",
    "[TENANT=]LEVEL",
    "How much of receivers' answers the history keeps: none, status, headers or body, each with those before it; for all tenants, or for one, as in acme=status; may be repeated (default: body)"
  ),
  maxInFlight: Flag.Int("max-in-flight").pipe(
    Flag.withMetavar("N"),
    Flag.withDescription(
      `Requests in flight, to all endpoints together (default: ${defaultLoad.maxInFlight})`
    ),
    Flag.withDefault(defaultLoad.maxInFlight),
    Flag.filter(
      (count) => count >= minInFlight,
      () => `must be at least ${minInFlight}`
    )
  ),
  maxBytes: Flag.String("max-bytes").pipe(
    Flag.withMetavar("SIZE"),
    Flag.withDescription(
      `Bodies of deliveries in memory (default: ${bytesText(defaultLoad.maxBytes)})`
    ),
    Flag.withDefault(bytesText(defaultLoad.maxBytes)),
    Flag.filterMap(
      (text) =>
        Option.filter(Option.fromUndefinedOr(readBytes(text)), (bytes) => bytes >= minBytes),
      (text) =>
        readBytes(text) === undefined ? bytesExpected : `must be at least ${bytesText(minBytes)}`
    )
  ),
  stopWithin: durationFlag(
    "stop-within",
    "How long a stop waits for requests in flight (default: 30 seconds)"
  ).pipe(Flag.withDefault(Duration.seconds(30))),
  ...metricsFlags,
  traces: tracesFlag
}

/** Routes events, delivers them, or both, until it is stopped. */
export const worker = Command.make(
  "worker",
  workerFlags,
  Effect.fnUntraced(function* (flags) {
    const { id, maxBytes, maxInFlight, receiverCa, roles, stopWithin } = flags
    const reach = readReach(flags.allowNetwork, flags.allowPort)
    const answers = readAnswers(flags.answers)
    const ca = Option.match(receiverCa, {
      onNone: () => Result.succeed(undefined),
      onSome: readAuthority
    })
    if (Result.isFailure(reach)) return yield* refusal(reach.failure)
    if (Result.isFailure(answers)) return yield* refusal(answers.failure)
    if (Result.isFailure(ca)) return yield* refusal([ca.failure])
    const { everyone, tenants } = reach.success
    const load = yield* workerLoad(maxInFlight, { files: openFileLimit(), parts: 1 })
    const settings = {
      id: Option.getOrElse(id, ownId),
      roles,
      allowNetworks: everyone.networks,
      allowPorts: everyone.ports,
      tenantReach: tenants,
      receiverCa: ca.success,
      answers: answers.success,
      stopWithin: Duration.toMillis(stopWithin),
      traces: flags.traces,
      ...load,
      maxBytes
    }
    yield* serve(settings, flags).pipe(Effect.provide(connectedToServe), untilStopped)
  })
).pipe(
  Command.withDescription("Route events and deliver them, until told to stop"),
  Command.withExamples([
    { command: "petrel worker" },
    { command: "petrel worker --roles deliver --allow-network 10.1.0.0/16" },
    { command: "petrel worker --metrics 127.0.0.1:9464" },
    { command: "petrel worker --allow-network acme=10.1.0.0/16 --allow-port 8443" }
  ])
)
