import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { nkeys } from "@nats-io/transport-node"
import { Effect, Layer } from "effect"
import { afterAll } from "vitest"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import type { CredentialFiles } from "../../src/broker/credentials.ts"
import { eventually } from "../kit/engine.ts"
import { makeLog } from "../kit/log.ts"
import { startServer } from "../kit/nats-server.ts"

const directory = mkdtempSync(join(tmpdir(), "petrel-credentials-"))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const file = (name: string, content: string | Uint8Array) => {
  const path = join(directory, name)
  writeFileSync(path, content)
  return path
}

/** The JetStream account that a connection comes into answers. */
const connects = (url: string, files: CredentialFiles = {}) =>
  Effect.flatMap(natsClients, ({ ask, connection, jsm }) =>
    Effect.as(
      ask("look", () => jsm.getAccountInfo()),
      connection.info?.port
    )
  ).pipe(Effect.provide(Layer.fresh(connectTo({ url, ...files }))))

const problem = (url: string, files: CredentialFiles = {}) =>
  connects(url, files).pipe(
    Effect.flip,
    Effect.map(({ message }) => message)
  )

const server = (config: string) =>
  Effect.acquireRelease(
    Effect.promise(() => startServer({ config })),
    (one) => Effect.promise(() => one.stop())
  )

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString()

/** A JWT as nsc makes them: signed by the key of who issues it. */
const jwt = (
  issuer: nkeys.KeyPair,
  subject: nkeys.KeyPair,
  name: string,
  nats: object,
  exp?: number
) => {
  const part = (claims: object) => Buffer.from(JSON.stringify(claims)).toString("base64url")
  const claims = {
    ...{ jti: name, iat: Math.floor(Date.now() / 1000), iss: issuer.getPublicKey() },
    ...{ name, sub: subject.getPublicKey(), nats: { ...nats, version: 2 } },
    ...(exp === undefined ? {} : { exp })
  }
  const head = `${part({ typ: "JWT", alg: "ed25519-nkey" })}.${part(claims)}`
  return `${head}.${Buffer.from(issuer.sign(Buffer.from(head))).toString("base64url")}`
}

const unlimited = {
  ...{ subs: -1, data: -1, payload: -1, imports: -1, exports: -1, wildcards: true, conn: -1 },
  ...{ leaf: -1, mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 }
}

/** A broker's configuration in operator mode, and a user's credentials for it. */
const operatorMode = () => {
  const operator = nkeys.createOperator()
  const account = nkeys.createAccount()
  const system = nkeys.createAccount()
  const user = nkeys.createUser()
  const preload = [
    `${account.getPublicKey()}: ${jwt(operator, account, "petrel", { type: "account", limits: unlimited })}`,
    `${system.getPublicKey()}: ${jwt(operator, system, "SYS", { type: "account", limits: { ...unlimited, disk_storage: 0, mem_storage: 0 } })}`
  ]
  const config = [
    `operator: ${jwt(operator, operator, "op", { type: "operator" })}`,
    `system_account: ${system.getPublicKey()}`,
    `resolver: MEMORY`,
    `resolver_preload: { ${preload.join("\n")} }`
  ]
  const token = (exp?: number) =>
    jwt(account, user, "worker", { type: "user", subs: -1, data: -1, payload: -1 }, exp)
  const creds = (seed: string, exp?: number) =>
    `-----BEGIN NATS USER JWT-----\n${token(exp)}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`
  return {
    config: config.join("\n"),
    creds: creds(text(user.getSeed())),
    expiring: (exp: number) => creds(text(user.getSeed()), exp),
    others: creds(text(nkeys.createUser().getSeed()))
  }
}

/** A certificate of a CA, or a CA where none is given, as files. */
const certificate = (
  name: string,
  ca?: { readonly cert: string; readonly key: string },
  host = "localhost"
) => {
  const made = { cert: join(directory, `${name}.crt`), key: join(directory, `${name}.key`) }
  execFileSync(
    "openssl",
    [
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-keyout", made.key, "-out", made.cert, "-days", "2", "-subj", `/CN=${name}`],
      ...["-addext", `subjectAltName=DNS:${host}`],
      ...(ca === undefined ? [] : ["-CA", ca.cert, "-CAkey", ca.key])
    ],
    { stdio: "pipe" }
  )
  return made
}

describe("the credentials for a broker", () => {
  it.live("may be a user and password, or a token, in its address", () =>
    Effect.gen(function* () {
      const withUser = yield* server('authorization: { user: petrel, password: "p@ss/w,ord" }')
      const withToken = yield* server('authorization: { token: "to,k@en" }')
      for (const [{ port }, login, wrong] of [
        [withUser, "petrel:p@ss/w,ord", "petrel:wr@ng/w,ord"],
        [withToken, "to,k@en", "to,k@ens"]
      ] as const) {
        assert.strictEqual(yield* connects(`nats://${login}@127.0.0.1:${port}`), port)
        assert.strictEqual(yield* connects(`${login}@127.0.0.1:${port}`), port)
        const said = yield* problem(`${wrong}@127.0.0.1:${port}`)
        assert.include(said, `the broker at 127.0.0.1:${port} refuses`)
        for (const part of ["wr@ng", "w,ord", "k@en"]) assert.notInclude(said, part)
      }
    }).pipe(Effect.scoped)
  )

  it.live("may be an nkey in a file", () =>
    Effect.gen(function* () {
      const user = nkeys.createUser()
      const { port, url } = yield* server(
        `authorization: { users: [ { nkey: ${user.getPublicKey()} } ] }`
      )
      const nkey = file("user.nk", `${text(user.getSeed())}\n`)
      assert.strictEqual(yield* connects(url, { nkey }), port)
      const other = file("other.nk", nkeys.createUser().getSeed())
      assert.include(yield* problem(url, { nkey: other }), `refuses the nkey in ${other}`)
    }).pipe(Effect.scoped)
  )

  it.live("may be those that nsc writes into a file", () =>
    Effect.gen(function* () {
      const { config, creds, expiring, others } = operatorMode()
      const { port, url } = yield* server(config)
      assert.strictEqual(yield* connects(url, { creds: file("user.creds", creds) }), port)
      const other = file("other.creds", others)
      assert.include(yield* problem(url, { creds: other }), `refuses the credentials in ${other}`)
      const expired = file("expired.creds", expiring(1_790_000_000))
      assert.include(
        yield* problem(url, { creds: expired }),
        `refuses the credentials in ${expired}, which expired at 2026-09-21T14:13:20.000Z: put`
      )
    }).pipe(Effect.scoped)
  )

  it.live("are read again at each connection", () =>
    Effect.gen(function* () {
      const [old, new_] = [nkeys.createUser(), nkeys.createUser()]
      const config = (user: nkeys.KeyPair) =>
        `authorization: { users: [ { nkey: ${user.getPublicKey()} } ] }`
      const broker = yield* server(config(old))
      const nkey = file("changing.nk", old.getSeed())
      yield* Effect.gen(function* () {
        const { ask, jsm, onReconnect } = yield* natsClients
        const back = new Promise<void>((resume) => onReconnect(resume))
        writeFileSync(nkey, new_.getSeed())
        yield* Effect.promise(() => broker.restartWith(config(new_)))
        yield* Effect.promise(() => back)
        yield* ask("look", () => jsm.getAccountInfo())
      }).pipe(Effect.provide(Layer.fresh(connectTo({ url: broker.url, nkey }))))
    }).pipe(Effect.scoped)
  )

  it.live("may be a certificate, and the broker's may be of a CA of one's own", () =>
    Effect.gen(function* () {
      const ca = certificate("ca")
      const own = certificate("server", ca)
      const { cert, key } = certificate("client", ca)
      const { port } = yield* server(
        `tls { cert_file: "${own.cert}", key_file: "${own.key}", ca_file: "${ca.cert}", verify: true }`
      )
      const url = `tls://localhost:${port}`
      assert.strictEqual(yield* connects(url, { ca: ca.cert, cert, key }), port)
      // A CA alone asks for TLS, too.
      assert.strictEqual(yield* connects(`localhost:${port}`, { ca: ca.cert, cert, key }), port)
      assert.match(yield* problem(url, { cert, key }), /certificate.*--nats-ca/)
      const stranger = certificate("stranger-to-it")
      const notOfIt = yield* problem(url, { ca: stranger.cert, cert, key })
      assert.include(notOfIt, `was not issued by an authority in ${stranger.cert}`)
      assert.notInclude(notOfIt, "--use-system-ca")
      const other = certificate("other", ca, "other.example")
      const misnamed = yield* server(`tls { cert_file: "${other.cert}", key_file: "${other.key}" }`)
      const wrongName = yield* problem(`tls://localhost:${misnamed.port}`, { ca: ca.cert })
      assert.match(wrongName, /certificate for another name .*address it by a name that/)
      assert.notInclude(wrongName, "--nats-ca")
    }).pipe(Effect.scoped)
  )

  it.live("that are no longer whole are named by a running process that has to connect again", () =>
    Effect.gen(function* () {
      const ca = certificate("whole-ca")
      const own = certificate("whole-server", ca)
      const { cert, key } = certificate("whole-client", ca)
      const broker = yield* server(
        `tls { cert_file: "${own.cert}", key_file: "${own.key}", ca_file: "${ca.cert}", verify: true }`
      )
      const log = makeLog()
      const whole = readFileSync(key)
      const isSaid = (text: string) =>
        eventually(
          Effect.sync(() => log.count(text)),
          (count) => count === 1
        )
      yield* Effect.gen(function* () {
        yield* natsClients
        writeFileSync(key, readFileSync(certificate("another-client", ca).key))
        yield* Effect.promise(() => broker.restart())
        yield* isSaid("--nats-cert and --nats-key do not go together")
        rmSync(key)
        yield* isSaid(`--nats-key ${key} cannot be read: there is no such file`)
        writeFileSync(key, whole)
        yield* isSaid("the broker is back")
      }).pipe(
        Effect.provide(
          Layer.fresh(connectTo({ url: `tls://localhost:${broker.port}`, ca: ca.cert, cert, key }))
        ),
        Effect.provide(log.layer)
      )
    }).pipe(Effect.scoped)
  )

  it.live("say what is wrong where the broker takes no certificate of yours, or has no TLS", () =>
    Effect.gen(function* () {
      const ca = certificate("authority")
      const own = certificate("broker", ca)
      const { cert, key } = certificate("stranger", certificate("stranger-ca"))
      const { port } = yield* server(
        `tls { cert_file: "${own.cert}", key_file: "${own.key}", ca_file: "${ca.cert}", verify: true }`
      )
      const url = `tls://localhost:${port}`
      // Where it resets the connection at once, its word is lost, and what may be is said instead.
      assert.match(
        yield* problem(url, { ca: ca.cert }),
        /requires (a client certificate|or refuses your certificate).*--nats-cert/
      )
      assert.match(
        yield* problem(url, { ca: ca.cert, cert, key }),
        /refuses the certificate in .*stranger.crt|requires or refuses your certificate/
      )
      const plain = yield* server("")
      const withoutTls = yield* problem(`tls://localhost:${plain.port}`, { ca: ca.cert })
      assert.include(withoutTls, `the broker at tls://localhost:${plain.port} has no TLS`)
      assert.notInclude(withoutTls, "no NATS server answers")
    }).pipe(Effect.scoped)
  )

  it.live("that one of several servers refuses are the reason, whichever was tried last", () =>
    Effect.gen(function* () {
      const { port } = yield* server('authorization: { user: me, password: "right" }')
      const servers = `nats://me:wrong@127.0.0.1:${port},nats://me:wrong@127.0.0.1:9`
      // The client tries them in random order.
      for (let i = 0; i < 8; i++)
        assert.include(yield* problem(servers), `the broker at 127.0.0.1:${port} refuses this user`)
    }).pipe(Effect.scoped)
  )

  it.live("that cannot be are refused with a sentence", () =>
    Effect.gen(function* () {
      const missing = join(directory, "missing")
      const seed = text(nkeys.createUser().getSeed())
      const nkey = file("good.nk", seed)
      const bad = file("bad", "what is this?\n")
      const { cert } = certificate("one")
      const { key } = certificate("another")
      const url = "nats://127.0.0.1:9"
      const wrong: ReadonlyArray<readonly [CredentialFiles, string, string?]> = [
        [{ creds: missing }, `--creds ${missing} cannot be read: there is no such file`],
        [{ nkey: directory }, `--nkey ${directory} cannot be read: it is a directory`],
        [
          { creds: bad },
          `--creds ${bad} holds no credentials: they are what nsc writes, a JWT and a seed`
        ],
        [
          { nkey: bad },
          `--nkey ${bad} holds no nkey of a user: that is its seed, which begins with SU`
        ],
        [
          { nkey: file("account.nk", nkeys.createAccount().getSeed()) },
          "holds no nkey of a user: that is its seed, which begins with SU"
        ],
        [{ ca: bad }, `--nats-ca ${bad} holds no certificate`],
        [{ cert, key }, "--nats-cert and --nats-key do not go together"],
        [{ cert }, "--nats-cert and --nats-key go together: --nats-key (NATS_KEY) is missing"],
        [{ key }, "--nats-cert and --nats-key go together: --nats-cert (NATS_CERT) is missing"],
        [{ creds: bad, nkey }, "--creds (NATS_CREDS) and --nkey (NATS_NKEY) cannot be combined"],
        [
          { nkey },
          "the broker's address has a login, which cannot be combined with --nkey (NATS_NKEY)",
          "nats://user:secret@127.0.0.1:9"
        ]
      ]
      for (const [files, said, at = url] of wrong) {
        const sentence = yield* problem(at, files)
        assert.include(sentence, said)
        for (const hidden of [seed, "what is this", "secret"]) assert.notInclude(sentence, hidden)
      }
    })
  )
})
