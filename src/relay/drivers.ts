import { createRequire } from "node:module"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import type pg from "pg"
import type postgres from "postgres"

export type Parameter = string | number | null
export type Row = Readonly<Record<string, unknown>>

/** One session of a database. It ends with its connection, and is never made again by itself. */
export interface DriverSession {
  /** Runs a statement. Results of `bytea` are bytes, and those of `float8` and `text` as in JSON. */
  readonly query: (
    text: string,
    parameters: ReadonlyArray<Parameter>
  ) => Promise<ReadonlyArray<Row>>
  /** Calls `heard` for each notice of a channel. */
  readonly listen: (channel: string, heard: () => void) => Promise<unknown>
  readonly close: () => Promise<unknown>
}

export interface SessionOptions {
  /** Such as postgres://user:password@host:5432/database */
  readonly url: string
  readonly connectMs: number
  /** Called once when the connection has broken. */
  readonly broken: (why: string) => void
}

export interface Driver {
  readonly name: "pg" | "postgres"
  readonly open: (options: SessionOptions) => Promise<DriverSession>
}

const applicationName = "petrel-outbox"

const withPg = ({ Client }: Pick<typeof pg, "Client">): Driver => ({
  name: "pg",
  open: async ({ broken, connectMs, url }) => {
    const client = new Client({
      ...{ connectionString: url, application_name: applicationName },
      ...{ connectionTimeoutMillis: connectMs, keepAlive: true, keepAliveInitialDelayMillis: 5_000 }
    })
    client.on("error", ({ message }) => broken(message))
    client.on("end", () => broken("the connection has ended"))
    const listeners = new Map<string, () => void>()
    client.on("notification", ({ channel }) => listeners.get(channel)?.())
    await client.connect()
    return {
      query: async (text, parameters) => (await client.query(text, [...parameters])).rows,
      listen: (channel, heard) => {
        listeners.set(channel, heard)
        return client.query(`listen "${channel}"`)
      },
      close: () => client.end()
    }
  }
})

const withPostgres = (connect: typeof postgres): Driver => ({
  name: "postgres",
  open: async ({ broken, connectMs, url }) => {
    const sql = connect(url, {
      ...{ max: 1, idle_timeout: 0, max_lifetime: null, fetch_types: false },
      ...{ connect_timeout: Math.ceil(connectMs / 1_000), keep_alive: 5 },
      connection: { application_name: applicationName },
      onnotice: () => undefined,
      // It would connect again by itself, without the lock that this session has.
      onclose: () => broken("the connection has ended")
    })
    try {
      await sql.unsafe("select 1")
    } catch (error) {
      await sql.end({ timeout: 0 })
      throw error
    }
    return {
      query: (text, parameters) => sql.unsafe(text, [...parameters]),
      listen: (channel, heard) => sql.listen(channel, heard),
      close: () => sql.end({ timeout: 1 })
    }
  }
})

const load = async (folder: string, name: string): Promise<unknown> => {
  let path: string
  try {
    path = createRequire(join(folder, "package.json")).resolve(name)
  } catch {
    return undefined
  }
  const loaded: { readonly default?: unknown } = await import(pathToFileURL(path).href)
  return loaded.default ?? loaded
}

/**
 * Finds the driver that a project has: `pg`, or else `postgres`. Petrel has none of its own.
 *
 * @param folder the project's, or one below it.
 * @param names in the order in which they are looked for.
 * @returns undefined if it has neither.
 */
export const findDriver = async (
  folder: string,
  names: ReadonlyArray<Driver["name"]> = ["pg", "postgres"]
): Promise<Driver | undefined> => {
  for (const name of names) {
    const loaded = await load(folder, name)
    if (loaded === undefined) continue
    return name === "pg" ? withPg(loaded as typeof pg) : withPostgres(loaded as typeof postgres)
  }
  return undefined
}
