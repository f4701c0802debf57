import { registerHooks } from "node:module"
import { backlogTraps, bypassTraps, mendsTakenBack, sabotages } from "./sabotages.ts"

interface Replacement {
  /** Relative to src/. */
  readonly file: string
  readonly find: string
  readonly replace: string
}

/** Changes what is loaded of the engine from now on. Throws if the source has changed. */
const replaceInSource = (what: string, { file, find, replace }: Replacement): void => {
  const { href } = new URL(`../../src/${file}`, import.meta.url)
  registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context)
      if (url !== href) return loaded
      const source = String(loaded.source)
      if (source.split(find).length !== 2) throw new Error(`${what} does not fit ${file} any more`)
      return { ...loaded, source: source.replace(find, () => replace) }
    }
  })
}

/** What is otherwise in the simulation. */
const adaptations: ReadonlyArray<Replacement> = [
  // Its backlogs hold tens of deliveries: the usual lines would take all of them at once.
  {
    file: "delivery/scheduling/lane-scheduler.ts",
    find: "const refills = 8\n",
    replace: "const refills = 2\n"
  },
  // Few of them are small messages in a row: each is written again with the next.
  {
    file: "delivery/backlog/written-tails.ts",
    find: "const foldedTogether = { least: 4, most: 11 }\n",
    replace: "const foldedTogether = { least: 1, most: 1 }\n"
  },
  // What workers do for an intake and for outboxes, at intervals: there are none, and requests more
  // would change the meaning of every seed and of the files in regressions/.
  {
    file: "alerts/system-alerts.ts",
    find: "if (this.#looks++ % outboxesEvery === 0) this.#outboxes = yield* readOutboxReports",
    replace: "this.#looks++"
  },
  {
    file: "alerts/system-alerts.ts",
    find: "    yield* this.#judgeIncoming(troubled)\n",
    replace: ""
  },
  // Present values of raised alerts are written once a minute, which is more requests, too.
  {
    file: "alerts/alert-register.ts",
    find: "if (changed === undefined) return yield* renew(subject, found)",
    replace: "if (changed === undefined) return"
  },
  {
    file: "worker/partition-runner.ts",
    find: "    yield* Effect.forkScoped(keepIntakeSpace(holds))\n",
    replace: ""
  }
]

/**
 * Without `--bypass`, no router reads whether there is a bypass, and nobody makes one: that, too, is
 * many requests more.
 */
const noBypass: ReadonlyArray<Replacement> = [
  {
    file: "routing/bypass-watch.ts",
    find: "  yield* Effect.ignore(read)\n",
    replace: ""
  },
  {
    file: "routing/bypass-watch.ts",
    find: '  yield* Effect.forkScoped(keepGoing("read which events pass a flood", readNext, retryPauseMs))\n',
    replace: "  void readNext\n"
  },
  {
    file: "routing/bypass-watch.ts",
    find: "isKnown: () => elapsedMs() - readAt < knownForMs",
    replace: "isKnown: () => true"
  },
  {
    file: "worker/partition-runner.ts",
    find: "    yield* Effect.forkScoped(keepBypass(this.#node.layout.ackWait, holds))\n",
    replace: ""
  }
]

/** With it, the only tenant's events pass by a bypass again and again, without any flood. */
const bypassAtWill: ReadonlyArray<Replacement> = [
  {
    file: "policy/bypass.ts",
    find: "export const knownForMs = 7_000\n",
    replace: "export const knownForMs = 1_500\n"
  },
  {
    file: "policy/bypass.ts",
    find: "export const announcedForMs = 8_000\n",
    replace: "export const announcedForMs = 2_500\n"
  },
  {
    file: "policy/bypass.ts",
    find: "const clocksDifferMs = 60_000\n",
    replace: "const clocksDifferMs = 4_000\n"
  },
  {
    file: "policy/bypass.ts",
    find: "export const closingForMs = 75_000\n",
    replace: "export const closingForMs = 6_500\n"
  },
  {
    file: "policy/bypass.ts",
    find: "export const floodAbove = 5_000\n",
    replace: "export const floodAbove = -1\n"
  },
  {
    file: "policy/bypass.ts",
    find: "export const caughtUpBelow = 256\n",
    replace: "export const caughtUpBelow = 1e9\n"
  },
  {
    file: "routing/bypass-watch.ts",
    find: "const readEveryMs = 1_000\n",
    replace: "const readEveryMs = 400\n"
  },
  {
    file: "routing/bypass-keeper.ts",
    find: "const lookEveryMs = 2_000\n",
    replace: "const lookEveryMs = 700\n"
  },
  // As many as a consumer of the model forgets.
  {
    file: "routing/bypass-keeper.ts",
    find: "const forgottenAtMost = 256\n",
    replace: "const forgottenAtMost = 8\n"
  },
  {
    file: "routing/bypass-keeper.ts",
    find: "directory.tenantCount() < 2",
    replace: "directory.tenantCount() < 1"
  },
  {
    file: "routing/bypass-keeper.ts",
    find: "const sampleEveryMs = 10_000\n",
    replace: "const sampleEveryMs = 3_000\n"
  },
  {
    file: "routing/bypass-keeper.ts",
    find: "floodTenants(sample, directory.tenants())",
    replace: "{ ...floodTenants(sample, []), passing: [...directory.tenants()] }"
  },
  {
    file: "routing/queue-depth.ts",
    find: "left = deepFrom - depth\n",
    replace: "left = Math.min(deepFrom, 4) - depth\n"
  }
]

const backlogEndNotAsked: Replacement = {
  file: "delivery/recovery/takeover.ts",
  find: "const end = yield* endOf(stream)",
  replace: "const end = Number.MAX_SAFE_INTEGER"
}

const askedOnce: Replacement = {
  file: "broker/broker-error.ts",
  find: "const maxAsked = 4\n",
  replace: "const maxAsked = 0\n"
}

/**
 * What the engine once did otherwise, at another time, by name. A file of actions shows its failure
 * in the order in which things happened then, and names what it needs (`formerly`).
 */
const formerly: Readonly<Record<string, Replacement | ReadonlyArray<Replacement>>> = {
  "asked-once": askedOnce,
  "leaders-given-up-soon": [
    askedOnce,
    {
      file: "delivery/backlog/backlog-end.ts",
      find: 'readMessage("look at the end of a backlog", stream, { last_by_subj: subject })',
      replace:
        'Effect.timeout(readMessage("look at the end of a backlog", stream, { last_by_subj: subject }), 3_000)'
    },
    {
      file: "delivery/backlog/backlog-end.ts",
      find: 'removeIf("remove what was stored again", of.stream, one.seq, isThat(of, one))',
      replace:
        'Effect.timeout(removeIf("remove what was stored again", of.stream, one.seq, isThat(of, one)), 3_000)'
    },
    {
      file: "delivery/backlog/backlog-end.ts",
      find: 'yield* readMessage("look at what was stored again", stream, { seq })',
      replace:
        'yield* Effect.timeout(readMessage("look at what was stored again", stream, { seq }), 3_000)'
    },
    {
      file: "delivery/backlog/backlog-end.ts",
      find: 'yield* purge("purge what was stored again", stream, { filter: subject, seq })',
      replace:
        'yield* Effect.timeout(purge("purge what was stored again", stream, { filter: subject, seq }), 3_000)'
    },
    {
      file: "delivery/backlog/backlog.ts",
      find: "return Effect.map(read, ",
      replace: "return Effect.map(Effect.timeout(read, 3_000), "
    },
    {
      file: "delivery/backlog/backlog.ts",
      find: 'return this.#broker.purge("purge what has left a backlog", this.#stream, limits)',
      replace:
        'return Effect.timeout(this.#broker.purge("purge what has left a backlog", this.#stream, limits), 3_000)'
    },
    {
      file: "delivery/backlog/backlog.ts",
      find: "return Effect.map(info, ",
      replace: "return Effect.map(Effect.timeout(info, 3_000), "
    },
    {
      file: "delivery/bodies/event-bodies.ts",
      find: "return Effect.map(question, (message) =>",
      replace: "return Effect.map(Effect.timeout(question, 3_000), (message) =>"
    },
    {
      file: "delivery/bodies/event-bodies.ts",
      find: "return Effect.map(question, ({ state })",
      replace: "return Effect.map(Effect.timeout(question, 3_000), ({ state })"
    }
  ],
  "replaced-in-the-write": [
    {
      file: "broker/topology.ts",
      find: "      // enforce the limit.\n",
      replace: "      allow_rollup_hdrs: true,\n"
    },
    {
      file: "delivery/backlog/backlog-write.ts",
      find: '      ["Nats-Expected-Last-Subject-Sequence", String(expected)]\n',
      replace:
        '      ["Nats-Expected-Last-Subject-Sequence", String(expected)],\n      ...(parts.fold.length > 0 && this.isFirst ? [["Nats-Rollup", "sub"]] : [])\n'
    },
    {
      file: "delivery/backlog/write-steps.ts",
      find: "    writes.replaced = [...writes.replaced, ...fold]\n",
      replace: "    if (by === undefined) writes.replaced = [...writes.replaced, ...fold]\n"
    }
  ],
  "read-again-at-the-end": {
    file: "delivery/backlog/drain.ts",
    find: "return end !== undefined && window.next >= end + 1 && this.#written <= end && storing === 0",
    replace: "return end === -2"
  },
  "replaced-apart": [
    {
      file: "delivery/backlog/write-steps.ts",
      find: "this.#wasFolded(writes, write, true, isFirst ? tail : undefined)",
      replace: "this.#wasFolded(writes, write, true)"
    },
    {
      file: "delivery/backlog/write-steps.ts",
      find: "      writes.replaced.length === 0 &&\n",
      replace: "      writes.replaced.length < 8 &&\n"
    }
  ],
  "waits-for-time-outs": {
    file: "../test/simulation/connection.ts",
    find: "    for (const lose of this.#asked) this.#server.world.after(0, lose, this.process)\n",
    replace: ""
  },
  "taken-at-once": {
    file: "broker/take-turns.ts",
    find: "const unwatched = 8\n",
    replace: "const unwatched = 1_000_000_000\n"
  },
  "few-by-consumer": {
    file: "broker/scan.ts",
    find: "isDirect: config.allow_direct",
    replace: "isDirect: false"
  },
  "roster-by-two-subjects": {
    file: "cluster/roster.ts",
    find: "`, subjects, ...start })",
    replace: "`, subjects: rosterSubjects(bucket), ...start })"
  },
  "roster-read-once": {
    file: "cluster/roster.ts",
    find: "pass < maxPasses",
    replace: "pass < 1"
  },
  "counted-at-once": {
    file: "alerts/system-alerts.ts",
    find: "const counting = { inWindow: 20, atOnce: 1 }",
    replace: "const counting = { inWindow: 1e9, atOnce: 8 }"
  },
  "recovered-through-queues": {
    file: "routing/routing-recovery.ts",
    find: "if (keys !== undefined && this.#mayFanOut)",
    replace: "if (keys !== undefined && this.#mayFanOut && false)"
  },
  "written-at-once": {
    file: "delivery/backlog/endpoint-writes.ts",
    find: "const lingerMs = 20\n",
    replace: "const lingerMs = 0\n"
  },
  "not-followed-through-history": {
    file: "delivery/recovery/attempted-places.ts",
    find: "if (isHere || isLater) this.#last.set(key, seen)",
    replace: "if ((isHere || isLater) && false) this.#last.set(key, seen)"
  },
  "taken-in-one-line": {
    file: "broker/pull.ts",
    find: "turns[options.kind]",
    replace: "turns.deliveries"
  },
  "recorded-before-next": {
    file: "delivery/scheduling/lane.ts",
    find: "limit <= 1 ? limit : 8 * limit",
    replace: "limit"
  },
  "answered-at-once": {
    file: "broker/publisher.ts",
    find: "else this.#answer({ subject, settle, result })",
    replace: "else settle(result)"
  },
  "queued-unless-behind": {
    file: "delivery/backlog/direct-to-backlog.ts",
    find: "      !health.refuses(key) &&\n",
    replace:
      "      (this.#options.index.hasBacklog(key) || this.#options.health.limit(key) === 0) &&\n      !health.refuses(key) &&\n"
  },
  "located-in-one-reading": {
    file: "history/locate.ts",
    find: "return this.#seeToTheEnd(range, (message) => {",
    replace: "return seeStream(range, (message) => {"
  },
  "moved-unnumbered": [
    {
      file: "operations/repartition/move.ts",
      find: 'if (relocation === undefined || from.kind === "queue") return relocation',
      replace: "if (from !== undefined) return relocation"
    },
    {
      file: "operations/repartition/move.ts",
      find: "yield* readBacklogEnd(target)",
      replace: "{ stored: 0 }"
    }
  ],
  "owners-not-noted": {
    file: "delivery/partition.ts",
    find: "Effect.provideService(noteOwner(memory.index, { owner, after }), Broker, broker)",
    replace: "Effect.succeed([{ owner, after }])"
  },
  "owners-not-read": [
    {
      file: "delivery/recovery/takeover.ts",
      find: "const owners = yield* readOwners(index)",
      replace: "const owners = []"
    },
    backlogEndNotAsked
  ],
  "backlog-end-not-asked": backlogEndNotAsked,
  "place-until-recorded": {
    file: "delivery/execution/task.ts",
    find: 'if (this.#position !== undefined && this.#mode === "recording")',
    replace: 'if (this.#position !== undefined && this.#mode === "released")'
  }
}

/**
 * Changes what is otherwise in the simulation.
 *
 * @param names what the engine is to do as it did formerly.
 * @param hasBypass whether events pass by a bypass.
 */
export const adaptSource = (names: ReadonlyArray<string> = [], hasBypass = false): void => {
  for (const one of adaptations) replaceInSource("what is otherwise in the simulation", one)
  for (const one of hasBypass ? bypassAtWill : noBypass) replaceInSource("what makes a bypass", one)
  for (const name of names) {
    const replacement = formerly[name]
    if (replacement === undefined)
      throw new Error(`nothing was formerly ${name}: ${Object.keys(formerly).join(", ")}`)
    for (const one of [replacement].flat()) replaceInSource(name, one)
  }
}

/** What makes an event for a few endpoints one for many. */
const largeEvents: ReadonlyArray<Replacement> = [
  {
    file: "routing/large-events.ts",
    find: "const largeAbove = 64\n",
    replace: "const largeAbove = 1\n"
  },
  {
    file: "routing/queue-depth.ts",
    find: "const deepFrom = 2_048\n",
    replace: "const deepFrom = 4\n"
  },
  {
    file: "routing/plan.ts",
    find: "const maxEndpointsPerPart = 1_000\n",
    replace: "const maxEndpointsPerPart = 2\n"
  }
]

/** What makes a few events of the only tenant fill the router's window. */
const crowdedWindow: ReadonlyArray<Replacement> = [
  {
    file: "routing/router.ts",
    find: "const maxPrefetched = 256\n",
    replace: "const maxPrefetched = 8\n"
  },
  {
    file: "routing/router.ts",
    find: "const hasOtherTenants = () => directory.tenantCount() > 1\n",
    replace: "const hasOtherTenants = () => directory.tenantCount() > 0\n"
  },
  {
    file: "routing/held-events.ts",
    find: "const maxHeld = 2_048\n",
    replace: "const maxHeld = 8\n"
  }
]

/** Has the window of a router filled by a few events, which are held beside it or returned. */
export const crowdWindow = (): void => {
  for (const one of crowdedWindow) replaceInSource("what makes a window crowded", one)
}

/** Has events routed in turns and in parts that are for more than one endpoint. */
export const makeEventsLarge = (): void => {
  for (const one of largeEvents) replaceInSource("what makes events large", one)
}

/** Applies a sabotage. One that does not fit the source any more is written anew, and not dropped. */
export const applySabotage = (name: string): void => {
  const all = [...sabotages, ...backlogTraps, ...bypassTraps, ...mendsTakenBack]
  const sabotage = all.find((each) => each.name === name)
  if (sabotage === undefined)
    throw new Error(`no sabotage ${name}: ${all.map((each) => each.name).join(", ")}`)
  replaceInSource(`the sabotage ${name}`, sabotage)
}
