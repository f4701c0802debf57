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

/** Why it is not known who is logged in. */
export const unknownBecause = signal<string | undefined>(undefined)

/** Ends what the console takes for no session any more: the page for logging in says why it is there. */
export const endSession = (): void => {
  unknownBecause.value = "the session has ended"
  session.value = null
}

/** Returns what an answer that says no says. */
const detailOf = async (answer: Response): Promise<string> => {
  const problem = (await answer.json().catch(() => null)) as { readonly detail?: string } | null
  return problem?.detail ?? `the console answered ${answer.status}`
}

/** Asks the console who is logged in: a console that cannot say so does not say that nobody is. */
export const readSession = async (): Promise<void> => {
  try {
    const answer = await fetch("/session", { cache: "no-store" })
    if (answer.ok) session.value = (await answer.json()) as Session
    else if (answer.status === 401) session.value = null
    unknownBecause.value = answer.ok || answer.status === 401 ? undefined : await detailOf(answer)
  } catch {
    unknownBecause.value = "the console does not answer"
  }
  const colour = session.value?.brand?.colour
  if (colour !== undefined) document.documentElement.style.setProperty("--accent", colour)
}

/**
 * Opens a session with a token or the secret part of a link.
 *
 * @returns why not, or undefined. It rejects where the console does not say so.
 */
export const logIn = async (token: string): Promise<string | undefined> => {
  const answer = await fetch("/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token })
  })
  if (answer.ok) {
    // Who was logged in before is not who is now.
    session.value = undefined
    await readSession()
    return undefined
  }
  const problem = await detailOf(answer)
  if (answer.status >= 500) throw new Error(problem)
  return problem
}

/**
 * Ends the session.
 *
 * @returns why not, or undefined.
 */
export const logOut = async (): Promise<string | undefined> => {
  try {
    const answer = await fetch("/session", { method: "DELETE" })
    if (!answer.ok) return await detailOf(answer)
    session.value = null
    return undefined
  } catch {
    return "the console does not answer"
  }
}

/**
 * The console, asked with the session's cookie. A page repeats what fails by itself. What publishes
 * events, or waits for a job's end, is not in the pages' script (`build/ui.ts`).
 */
export const petrel: Omit<Client, "finish" | "publish" | "publishAll" | "publishRaw"> = httpClient({
  url: "",
  retryForMs: 0,
  timeoutMs: 20_000
})

/** True if the session may do something. */
export const may = (scope: string): boolean => session.value?.scopes.includes(scope) === true
