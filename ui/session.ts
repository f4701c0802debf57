import { signal } from "@preact/signals"
import { type Client, httpClient } from "../src/client/client.ts"

/** Who is logged in, as the console tells it. */
export interface Session {
  readonly id: string
  /** `*`: all tenants. */
  readonly tenant: string
  /** The one endpoint that the session is about. */
  readonly endpoint?: string
  readonly scopes: ReadonlyArray<string>
  readonly name?: string
  readonly brand?: { readonly name?: string; readonly colour?: string; readonly logo?: string }
  readonly expiresAt?: string
}

/** Undefined until it is known, null without a session. */
export const session = signal<Session | null | undefined>(undefined)

/** Asks the console who is logged in. */
export const readSession = async (): Promise<void> => {
  const answer = await fetch("/session", { cache: "no-store" })
  session.value = answer.ok ? ((await answer.json()) as Session) : null
  const colour = session.value?.brand?.colour
  if (colour !== undefined) document.documentElement.style.setProperty("--accent", colour)
}

/**
 * Opens a session with a token or the secret part of a link.
 *
 * @returns why not, or undefined.
 */
export const logIn = async (token: string): Promise<string | undefined> => {
  const answer = await fetch("/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token })
  })
  if (answer.ok) {
    await readSession()
    return undefined
  }
  const problem = (await answer.json().catch(() => ({}))) as { readonly detail?: string }
  return problem.detail ?? `the console answered ${answer.status}`
}

export const logOut = async (): Promise<void> => {
  await fetch("/session", { method: "DELETE" })
  session.value = null
}

/** The console, asked with the session's cookie. A page repeats what fails by itself. */
export const petrel: Client = httpClient({ url: "", retryForMs: 0, timeoutMs: 20_000 })

/** True if the session may do something. */
export const may = (scope: string): boolean => session.value?.scopes.includes(scope) === true
