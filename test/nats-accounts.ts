import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { NatsConnection } from "@nats-io/transport-node"
import { connect } from "@nats-io/transport-node"
import { Effect } from "effect"
import { findNatsServer } from "../src/broker/embedded/binary.ts"
import { launch } from "./nats-server.ts"

/** The configuration that Petrel comes with. */
export const natsConf = fileURLToPath(new URL("../nats.conf", import.meta.url))

/** Lines that are configuration and not prose begin with # and no single space. */
export const takenIntoUse = (block: string): string => block.replaceAll(/^#(?! \S|$)/gm, "")

export const onFreePorts = (configuration: string): string =>
  configuration
    .replace("port: 4222", "port: -1")
    .replace('http: "127.0.0.1:8222"', 'http: "127.0.0.1:-1"')

export type User = "operator" | "worker" | "alerts" | "acme" | "auditor"

/** A broker that runs with `nats.conf` as it is shipped, its accounts taken into use. */
export interface AccountsServer {
  /** Its address with a user and password. */
  readonly url: (user: User) => string
  /** Connects as a user; closed with the server at the latest. */
  readonly as: (user?: User) => Promise<NatsConnection>
  /** What it has refused for lack of permission, a line of its log each; all of it once it has ended. */
  readonly violations: ReadonlyArray<string>
  readonly stop: () => Promise<void>
}

/**
 * Starts it; whoever does so stops it.
 *
 * @param changed what to make of the configuration before. (Default: nothing)
 */
export const startWithAccounts = async (
  changed: (configuration: string) => string = (text) => text
): Promise<AccountsServer> => {
  const directory = await mkdtemp(join(tmpdir(), "petrel-test-accounts-"))
  // What comes after the block is about further accounts.
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
