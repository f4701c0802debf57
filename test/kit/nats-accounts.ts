import { readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { NatsConnection } from "@nats-io/transport-node"
import { connect } from "@nats-io/transport-node"
import { Effect } from "effect"
import { findNatsServer } from "../../src/broker/embedded/binary.ts"
import { launch } from "./nats-server.ts"
import { storeDirectory } from "./store-directory.ts"

/** The configuration that is shipped with Petrel. */
export const natsConf = fileURLToPath(new URL("../../nats.conf", import.meta.url))

/**
 * Uncomments the configuration. Lines of configuration begin with # without a single space after
 * it; lines of prose have one.
 */
export const takenIntoUse = (block: string): string => block.replaceAll(/^#(?! \S|$)/gm, "")

export const onFreePorts = (configuration: string): string =>
  configuration
    .replace("port: 4222", "port: -1")
    .replace('http: "127.0.0.1:8222"', 'http: "127.0.0.1:-1"')

export type User =
  | "operator"
  | "worker"
  | "console"
  | "ingest"
  | "alerts"
  | "access_operator"
  | "access_console"
  | "access_backup"
  | "backup"
  | "outbox"
  | "acme"
  | "auditor"

/** A broker with `nats.conf` as shipped and its accounts enabled. */
export interface AccountsServer {
  /** Returns its address with a user and password. */
  readonly url: (user: User) => string
  /** Connects as a user. The connection is closed with the server at the latest. */
  readonly as: (user?: User) => Promise<NatsConnection>
  /** Permission violations, one line of its log each. Complete once it has exited. */
  readonly violations: ReadonlyArray<string>
  readonly stop: () => Promise<void>
}

/**
 * Starts the broker. The caller stops it.
 *
 * @param changed transforms the configuration first. (Default: unchanged)
 */
export const startWithAccounts = async (
  changed: (configuration: string) => string = (text) => text
): Promise<AccountsServer> => {
  const directory = await storeDirectory("petrel-test-accounts-")
  // The configuration after the block is about further accounts.
  const [before, accounts] = (await readFile(natsConf, "utf8")).split(
    /^(?=#accounts \{$)|^#\}\n(?=\n# Tenants)/m
  )
  if (before === undefined || accounts === undefined) throw new Error("nats.conf has no accounts")
  const file = join(directory, "nats.conf")
  await writeFile(file, onFreePorts(changed(`${before}${takenIntoUse(accounts)}}\n`)))
  const roles = [...accounts.matchAll(/\$PETREL_(\w+)_PASSWORD/g)].map(([, role = ""]) => role)
  const passwords = roles.map((role) => [`PETREL_${role}_PASSWORD`, `"${role.toLowerCase()}-1"`])
  const { path } = await Effect.runPromise(findNatsServer())
  const server = await launch(path, file, Object.fromEntries(passwords))
  const opened: Array<NatsConnection> = []
  return {
    violations: server.violations,
    url: (user) => `nats://${user}:${user}-1@127.0.0.1:${server.port}`,
    as: async (user) => {
      const connection = await connect({
        servers: `nats://127.0.0.1:${server.port}`,
        reconnect: false,
        ...(user === undefined ? {} : { user, pass: `${user}-1` })
      })
      opened.push(connection)
      return connection
    },
    stop: async () => {
      await Promise.all(opened.map((connection) => connection.close()))
      await server.end()
      await rm(directory, { recursive: true, force: true })
    }
  }
}
