import type { Scope } from "effect"
import { Context, Effect, Result } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpEffect } from "effect/http"
import packageJson from "../../package.json" with { type: "json" }
import { Insider, type InsiderRecord } from "../api/insider.ts"
import type { BareProblem } from "../api/problems.ts"
import { problemBody, problemType } from "../api/problems.ts"
import type { ApiApp } from "../api/server.ts"
import { inAccess } from "../broker/access.ts"
import { Broker } from "../broker/broker.ts"
import type { ServiceAnswer, ServiceRequest } from "../broker/micro-service.ts"
import { startMicroService } from "../broker/micro-service.ts"
import { nobody } from "../domain/token.ts"
import { bytesText } from "../operations/text/bytes.ts"
import { allTenants, scopes } from "../operations/tokens/token.ts"
import { apiRequest, tenantIn } from "./api-request.ts"
import { type ServiceOperation, serviceOperations } from "./operations.ts"

/** Requests that are answered at the same time. What comes beyond is refused. */
const maxAtOnce = 256
/** Bytes of an answer that its headers may take, of what the broker passes on. */
const roomForHeaders = 4_096
/** Headers of an answer of the API that are told; others are about HTTP. */
const toldHeaders = ["content-type", "etag", "location", "retry-after"]

const errorStatus = 400

const problemAnswer = (problem: BareProblem): ServiceAnswer => ({
  body: Buffer.from(problemBody(problem), "utf8"),
  headers: { "content-type": problemType, status: String(problem.status) },
  error: { code: problem.status, description: problem.title }
})

const busy: BareProblem = {
  status: 503,
  name: "unavailable",
  title: "It cannot be answered now",
  detail: `${maxAtOnce} requests are being answered: try again`
}

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
  if (body.length > most - roomForHeaders)
    return problemAnswer({
      status: 413,
      name: "too-large",
      title: "The answer is too large",
      detail: `the answer takes ${bytesText(body.length)}, and the broker passes on ${bytesText(most)}: ask for less, such as with limit, or over HTTP`
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

/**
 * Offers the API as a NATS micro service, until the scope closes: requests on
 * `petrel.api.v1.<tenant>.<operation>`, `_` for all tenants, in the account of access (broker/access.ts).
 * The broker's permissions authorise; the API itself answers, with the same schemas and problems as
 * over HTTP.
 *
 * @param app what answers requests of the API.
 */
export const startNatsService = Effect.fnUntraced(function* (app: ApiApp) {
  const { names, server } = yield* Broker
  const handle = HttpEffect.toWebHandlerWith<never, Served>(yield* Effect.context<never>())(app)
  const most = server().max_payload ?? Number.POSITIVE_INFINITY
  let running = 0
  const bounded = <A>(work: Effect.Effect<ServiceAnswer, A>) =>
    Effect.suspend(() => {
      if (running >= maxAtOnce) return Effect.succeed(problemAnswer(busy))
      running++
      return Effect.ensuring(
        work,
        Effect.sync(() => {
          running--
        })
      )
    })
  yield* inAccess(
    startMicroService({
      name: names.subjects.root,
      version: packageJson.version,
      description: packageJson.description,
      endpoints: serviceOperations.map((operation) => {
        const anyTenant = names.subjects.api("*", operation.id)
        // What is of no tenant is asked for as all of them.
        const subject = operation.path.includes("{tenant}")
          ? anyTenant
          : names.subjects.api(nobody, operation.id)
        const answer = answerWith(handle, most, operation, anyTenant.split(".").indexOf("*"))
        return {
          name: operation.id.replaceAll(".", "-"),
          subject,
          metadata: { summary: operation.summary, http: `${operation.method} ${operation.path}` },
          answer: (message) => bounded(answer(message))
        }
      })
    })
  )
})
