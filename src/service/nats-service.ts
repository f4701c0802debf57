import type { Scope } from "effect"
import { Context, Effect, Result } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpEffect } from "effect/http"
import packageJson from "../../package.json" with { type: "json" }
import { Insider, type InsiderRecord } from "../api/credential.ts"
import type { BareProblem } from "../api/problems.ts"
import { problemBody, problemHeaders, problemType, unavailableProblem } from "../api/problems.ts"
import type { ApiApp } from "../api/server.ts"
import { RequestRates } from "../api/tokens/caller-limits.ts"
import { inAccess } from "../broker/access.ts"
import { Broker } from "../broker/broker.ts"
import type { ServiceAnswer, ServiceEndpoint, ServiceRequest } from "../broker/micro-service.ts"
import { startMicroService } from "../broker/micro-service.ts"
import { nobody } from "../domain/token.ts"
import type { RefusalCells } from "../metrics/refused-requests.ts"
import { allTenants, defaultTokenRate, scopes } from "../operations/token.ts"
import { Shares } from "../policy/shares.ts"
import { bytesText } from "../text/quantities.ts"
import { apiRequest, tenantIn } from "./api-request.ts"
import {
  operationSchemas,
  type ServiceOperation,
  schemaNamed,
  serviceOperations
} from "./operations.ts"

/** Requests that are answered at the same time; one tenant has half of them where it is alone. */
const maxAtOnce = 256
/** Bytes of an answer that its headers may take, of what the broker passes on. */
const headerBytes = 4_096
/** Headers of an answer of the API that are told; others are about HTTP. */
const toldHeaders = ["content-type", "etag", "idempotency-replayed", "location", "retry-after"]

const errorStatus = 400

const problemAnswer = (problem: BareProblem): ServiceAnswer => ({
  body: Buffer.from(problemBody(problem), "utf8"),
  headers: {
    ...problemHeaders(problem),
    "content-type": problemType,
    status: String(problem.status)
  },
  error: { code: problem.status, description: problem.title }
})

/** Seconds after which a refused request is worth trying again. */
const retryAfter = 1

const busy = problemAnswer(
  unavailableProblem(
    "as many requests of this tenant are being answered as it may have at once: try again",
    retryAfter
  )
)

const tooMany = (perSecond: number) =>
  problemAnswer({
    status: 429,
    name: "too-many-requests",
    title: "The tenant makes too many requests",
    detail: `a tenant may make ${perSecond} requests a second over NATS: wait`,
    retryAfter
  })

/** Whom a subject stands for: whoever may publish to it was authorised by the broker. */
const insiderOf = (tenant: string): InsiderRecord => ({
  tenant,
  scopes: tenant === allTenants ? scopes : scopes.filter((scope) => scope !== "operator"),
  by: `NATS (${tenant === allTenants ? "all tenants" : `tenant ${tenant}`})`
})

const titleIn = (body: Uint8Array): string | undefined => {
  try {
    const { title }: { title?: unknown } = Object(JSON.parse(Buffer.from(body).toString("utf8")))
    return typeof title === "string" ? title : undefined
  } catch {
    return undefined
  }
}

/** Returns what the API answered, as the answer of a service. */
const serviceAnswer = async (response: Response, most: number): Promise<ServiceAnswer> => {
  const { headers, status } = response
  const body = new Uint8Array(await response.arrayBuffer())
  if (body.length > most - headerBytes)
    return problemAnswer({
      status: 413,
      name: "too-large",
      title: "The answer is too large",
      detail: `the answer takes ${bytesText(body.length)}, and the broker passes on at most ${bytesText(most)}: ask for less, for example with limit, or ask over HTTP`
    })
  const told = toldHeaders.flatMap((name) => {
    const value = headers.get(name)
    return value === null ? [] : [[name, value] as const]
  })
  return {
    body,
    headers: { ...Object.fromEntries(told), status: String(status) },
    ...(status < errorStatus
      ? {}
      : { error: { code: status, description: titleIn(body) ?? "The request is refused" } })
  }
}

/** What the handler gives each request. */
type Served = HttpServerRequest.HttpServerRequest | Scope.Scope

type Handle = (request: Request, context: Context.Context<never>) => Promise<Response>

/** Asks the API what a message asks for. */
const answerWith =
  (handle: Handle, most: number, operation: ServiceOperation, place: number) =>
  (message: ServiceRequest): Effect.Effect<ServiceAnswer> => {
    const tenant = tenantIn(message.subject.split(".")[place] ?? "")
    const asked = apiRequest(operation, tenant, message)
    if (Result.isFailure(asked)) return Effect.succeed(problemAnswer(asked.failure))
    const { body, headers, method, url } = asked.success
    const request = new Request(`http://petrel${url}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body })
    })
    return Effect.promise(async () =>
      serviceAnswer(await handle(request, Context.make(Insider, insiderOf(tenant))), most)
    )
  }

const defect = problemAnswer({
  status: 500,
  name: "internal",
  title: "This is a defect of Petrel",
  detail: "the console's log has more about it"
})

/** Answers also where a defect prevents the answer: else who asks waits for one. */
const always =
  (answer: (message: ServiceRequest) => Effect.Effect<ServiceAnswer>) =>
  (message: ServiceRequest): Effect.Effect<ServiceAnswer> =>
    Effect.suspend(() => answer(message)).pipe(
      Effect.catchDefect((error) =>
        Effect.as(
          Effect.logError("a request over NATS failed", { subject: message.subject }, error),
          defect
        )
      )
    )

/** What bounds the requests over NATS. */
export interface ServiceBounds {
  /**
   * A connection for the requests alone: the broker closes one whose client does not read as fast as
   * a tenant sends. (Default: that of the account of access)
   */
  readonly broker: Broker["Service"] | undefined
  /** Requests that are answered at the same time. (Default: 256) */
  readonly atOnce: number
  /** Requests of each tenant per second. (Default: as many as of a token) */
  readonly perSecond: number
  /** Counts what is refused. */
  readonly refused: RefusalCells
}

/**
 * Bounds requests by their tenant: its rate, then its share of those that are answered at the same
 * time.
 *
 * @param place of the tenant in the subject of a request.
 */
const admitting = (
  { atOnce, perSecond, refused }: Omit<ServiceBounds, "broker">,
  place: number
) => {
  const rates = new RequestRates()
  const shares = new Shares(atOnce)
  const over = tooMany(perSecond)
  return (subject: string) => {
    const tenant = subject.split(".")[place] ?? ""
    if (rates.take(tenant, perSecond).waitMs > 0) {
      refused.note("nats-rate")
      return over
    }
    if (!shares.take(tenant)) {
      refused.note("nats-requests")
      return busy
    }
    return () => shares.give(tenant)
  }
}

/** The schemas are no operation of the API: over HTTP they are in its document. */
const schemaOperation = "schemas.get"

const noSchema = problemAnswer({
  status: 404,
  name: "not-found",
  title: "It does not exist",
  detail: "there is no such schema: ask for a name that the metadata of an operation refers to"
})

/** Answers with the schema whose name is the message. */
const answerSchema = ({ body }: ServiceRequest): Effect.Effect<ServiceAnswer> =>
  Effect.sync(() => {
    const schema = schemaNamed(Buffer.from(body).toString("utf8").trim())
    return schema === undefined
      ? noSchema
      : {
          body: Buffer.from(JSON.stringify(schema), "utf8"),
          headers: { "content-type": "application/schema+json", status: "200" }
        }
  })

/** The service's endpoint for each operation, and the one that tells schemas. */
const endpointsOf = (
  { api }: { readonly api: (tenant: string, operation: string) => string },
  answerTo: (operation: ServiceOperation) => ServiceEndpoint["answer"]
): ReadonlyArray<ServiceEndpoint> => {
  const schemas = operationSchemas()
  const operations = serviceOperations.map((operation) => ({
    name: operation.id.replaceAll(".", "-"),
    // What is of no tenant is asked for as all of them.
    subject: api(operation.path.includes("{tenant}") ? "*" : nobody, operation.id),
    metadata: {
      summary: operation.summary,
      http: `${operation.method} ${operation.path}`,
      ...schemas.get(operation.id)
    },
    answer: answerTo(operation)
  }))
  return [
    ...operations,
    {
      name: schemaOperation.replaceAll(".", "-"),
      subject: api("*", schemaOperation),
      metadata: { summary: "Tell the schema whose name is the message" },
      answer: always(answerSchema)
    }
  ]
}

/**
 * Offers the API as a NATS micro service, until the scope closes: requests on
 * `petrel.api.v1.<tenant>.<operation>`, `_` for all tenants, in the account of access (broker/access.ts).
 * The broker's permissions authorise; the API itself answers, with the same schemas and problems as
 * over HTTP.
 *
 * @param app what answers requests of the API.
 */
export const startNatsService = Effect.fnUntraced(function* (
  app: ApiApp,
  bounds: Partial<ServiceBounds> & Pick<ServiceBounds, "refused">
) {
  const { names, server } = yield* Broker
  const handle = HttpEffect.toWebHandlerWith<never, Served>(yield* Effect.context<never>())(app)
  const most = server().max_payload ?? Number.POSITIVE_INFINITY
  const place = names.subjects.api("*", "").split(".").indexOf("*")
  const admit = admitting({ atOnce: maxAtOnce, perSecond: defaultTokenRate, ...bounds }, place)
  const { broker } = bounds
  const offer = startMicroService({
    admit,
    name: names.subjects.root,
    version: packageJson.version,
    description: packageJson.description,
    endpoints: endpointsOf(names.subjects, (operation) =>
      always(answerWith(handle, most, operation, place))
    )
  })
  yield* broker === undefined ? inAccess(offer) : Effect.provideService(offer, Broker, broker)
})
