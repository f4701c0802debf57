import { Effect } from "effect"
import type { ApiApp, ApiOptions } from "../../src/api/server.ts"
import { serveApi } from "../../src/api/server.ts"
import type { Broker } from "../../src/broker/broker.ts"
import { RefusalCells, RefusedRequests } from "../../src/metrics/refused-requests.ts"
import { operatorNamed } from "../../src/operations/caller.ts"
import type { NewToken } from "../../src/operations/token.ts"
import { allTenants, scopes } from "../../src/operations/token.ts"
import { createToken, revokeToken } from "../../src/operations/tokens/manage-tokens.ts"
import { LiveTokens } from "../../src/operations/tokens/token-store.ts"
import { startNatsService } from "../../src/service/nats-service.ts"
import { eventually } from "./engine.ts"

/** An answer of the API. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** Its body, if it is JSON. */
  readonly json: Record<string, unknown>
  readonly text: string
}

/** A request to the API. A body that is no text is sent as JSON. */
export interface Request {
  readonly method?: string
  readonly token?: string | undefined
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

/** A console that serves the API, in this process or another one. */
export interface AskedConsole {
  readonly url: string
  readonly ask: (path: string, request?: Request) => Effect.Effect<Answer>
  /** Makes a token; by default one of acme with all scopes of a tenant. */
  readonly token: (settings?: Partial<NewToken>) => Effect.Effect<string>
}

/** A console that serves the API, in this process. */
export interface TestConsole extends AskedConsole {
  readonly app: ApiApp
  /** Counts what it refuses. */
  readonly refused: RefusalCells
}

const isJson = (type: string | null): boolean => type !== null && /[/+]json\b/.test(type)

const asked = (url: string, { body, headers = {}, method = "GET", token }: Request = {}) =>
  Effect.promise(async (): Promise<Answer> => {
    const isText = typeof body === "string" || body instanceof Uint8Array
    const response = await fetch(url, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined || isText ? {} : { "content-type": "application/json" }),
        ...headers
      },
      ...(body === undefined ? {} : { body: isText ? (body as string) : JSON.stringify(body) })
    })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      json: isJson(response.headers.get("content-type")) ? JSON.parse(text) : {},
      text
    }
  })

/** Makes a token as the command line does. */
const createTestToken = (settings: NewToken) =>
  Effect.provide(createToken(settings, operatorNamed("test")), LiveTokens.layer)

/** Revokes a token as the command line does. */
export const revokeTestToken = (id: string) =>
  Effect.provide(revokeToken(id, { by: "test" }), LiveTokens.layer)

/** The scopes of a token that may do all that a tenant may. */
export const tenantScopes = scopes.filter((scope) => scope !== "operator")

/** Asks a console of this installation that serves the API at a URL. */
const consoleAt = Effect.fnUntraced(function* (url: string) {
  const context = yield* Effect.context<Broker>()
  const ask = (path: string, request?: Request) => asked(`${url}${path}`, request)
  return {
    url,
    ask,
    token: (settings = {}) =>
      Effect.gen(function* () {
        const wanted = {
          tenant: "acme",
          scopes: settings.tenant === allTenants ? scopes : tenantScopes,
          ...settings
        } as NewToken
        const { token } = yield* createTestToken(wanted)
        const path = `/v1/tenants/${settings.tenant ?? "acme"}/endpoints`
        // It comes to the console with its watch.
        const isKnown = ({ status }: Answer) => status !== 401
        if (settings.expiresAt === undefined) yield* eventually(ask(path, { token }), isKnown)
        return token
      }).pipe(Effect.provideContext(context), Effect.orDie)
  } satisfies AskedConsole
})

/** Starts a console on a free port. It stops with the scope. */
export const startConsole = Effect.fnUntraced(function* (options: Partial<ApiOptions> = {}) {
  const { app, port, refused } = yield* serveApi({
    host: "127.0.0.1",
    port: 0,
    stopWithin: 2_000,
    ...options
  }).pipe(Effect.provideService(RefusedRequests, new RefusalCells()))
  const asked = yield* consoleAt(`http://127.0.0.1:${port}`)
  return { ...asked, app, refused } satisfies TestConsole
})

/** Offers the API over NATS, until the scope closes. */
export const serveNatsApi = () =>
  Effect.flatMap(startConsole(), ({ app, refused }) => startNatsService(app, { refused }))
