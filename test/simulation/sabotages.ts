/**
 * One deliberate defect: a change of the engine's source that the simulation must find. The product
 * carries none of it; the simulation's loader applies one while it loads the engine.
 */
export interface Sabotage {
  readonly name: string
  /** What goes wrong, for people. */
  readonly what: string
  /** The file that is changed, relative to src. */
  readonly file: string
  /** Text that occurs in the file exactly once, and what takes its place. */
  readonly find: string
  readonly replace: string
}

/**
 * The defects that the simulation is measured by. They were chosen before its oracle was written: one
 * that is not found is a hole in the oracle or in the faults. None is removed because it is hard.
 */
export const sabotages: ReadonlyArray<Sabotage> = [
  {
    name: "ack-before-plan",
    what: "the router acknowledges an event before its plan is stored",
    file: "routing/router.ts",
    find: "    const { began, planCommit } = routed\n    if (isSole",
    replace: "    const { began, planCommit } = routed\n    routed.message.ack()\n    if (isSole"
  },
  {
    name: "takeover-without-history",
    what: "a new owner does not read the history",
    file: "delivery/recovery/takeover.ts",
    find: "const fact = mayBeMine ?",
    replace: "const fact = mayBeMine && message.subject === '' ?"
  },
  {
    name: "no-fence",
    what: "a worker writes without a look at whether it still owns the partition",
    file: "cluster/ownership.ts",
    find: "holds() ? Effect.succeed(true) : Effect.raceFirst(Effect.as(lost, false), isRenewed)",
    replace: "Effect.succeed(isRenewed !== undefined && lost !== undefined)"
  },
  {
    name: "watermark-too-far",
    what: "the watermark is raised one fact too far",
    file: "delivery/recovery/completed-deliveries.ts",
    find: "return floor === undefined ? undefined : this.#position.lowered(floor)",
    replace: "return floor === undefined ? undefined : this.#position.lowered(floor) + 1"
  },
  {
    name: "decision-not-stored",
    what: "a decision is applied without being stored before",
    file: "delivery/execution/decisions.ts",
    find: "this.#records.untilStored(Effect.provideContext(storeAsOwner, this.#services))",
    replace: "Effect.as(Effect.succeed([this.#records, storeAsOwner]), 0)"
  },
  {
    name: "release-before-fact",
    what: "a delivered message is released before the history has its success",
    file: "delivery/execution/success-log.ts",
    find: "this.#facts.tryAppend(success.fact, success.id, (stored) => {",
    replace:
      "Effect.runFork(work.recorded(success.fact)), this.#facts.tryAppend(success.fact, success.id, (stored) => {"
  },
  {
    name: "dedupe-without-round",
    what: "the message id of a further round is that of the first one",
    file: "rounds/round-start.ts",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
    find: "const messageId = `${roundKey(delivery)}.${endpoint}`",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
    replace: "const messageId = `${roundKey({ ...delivery, round: '0' })}.${endpoint}`"
  },
  {
    name: "schedule-without-record",
    what: "a schedule is made without the record that it was decided",
    file: "delivery/execution/decisions.ts",
    find: "this.#records.untilStored(Effect.provideContext(storeAsOwner, this.#services))",
    replace:
      "decided.decision._tag === 'Schedule' ? Effect.succeed(0) : this.#records.untilStored(Effect.provideContext(storeAsOwner, this.#services))"
  },
  {
    name: "nak-lost-on-reconnect",
    what: "the NAK of a message that came over an earlier connection is not sent",
    file: "broker/stream-message.ts",
    find: "(isStored) => isStored && this.#send(payload),",
    replace: "(isStored) => isStored && !payload.startsWith('-NAK') && this.#send(payload),"
  },
  {
    name: "wake-up-lost",
    what: "who waits for the gate is not woken when it opens",
    file: "broker/gate.ts",
    find: "--refused > 0 ? Effect.void : Deferred.succeed(opening, undefined)",
    replace: "--refused > 0 ? Effect.void : Effect.succeed(opening !== undefined)"
  },
  {
    name: "stale-directory",
    what: "plans are made from a directory that is behind its bucket",
    file: "endpoints/watch-lag.ts",
    find: 'if (this.#isTruncated) return "truncated"',
    replace: 'if (this.#isTruncated) return "truncated"\n    if (now > 0) return "current"'
  },
  {
    name: "cap-per-worker",
    what: "each worker uses the whole of a host's cap",
    file: "policy/shares.ts",
    find: "return Math.ceil(cap / Math.max(1, found.size))",
    replace: "return cap + 0 * found.size"
  }
]

/** Defects that the engine had: each takes a mend back. `seed` is one that finds it. */
export const mendsTakenBack: ReadonlyArray<Sabotage & { readonly seed?: number }> = [
  {
    name: "two-lost-answers-fill-the-disk",
    what: "a stream counts as one that stores nothing where two answers were lost (status)",
    file: "broker/unanswered.ts",
    find: "      count < leastTimedOut ||\n",
    replace: ""
  },
  {
    name: "decision-over-any-other",
    what: "what a former owner decided takes the place of its successor's decision (workers that stand still)",
    file: "delivery/retry/retry-records.ts",
    find: "      expected: over,\n",
    replace: "      ...(over < 0 ? { expected: over } : {}),\n"
  },
  {
    name: "lost-acks-not-renewed",
    what: "a message whose acknowledgement is lost several times is forgotten, and sent again",
    file: "delivery/source/queue-source.ts",
    find: "      memory.completed.renew(seq, storedAt)\n",
    replace: ""
  },
  {
    name: "standstill-not-noticed",
    what: "a worker that stood still attempts directly what another router has stored meanwhile",
    file: "broker/prefetch-window.ts",
    find: "return since < this.#stoodStillUntil",
    replace: "return since === this.#stoodStillUntil"
  },
  {
    name: "late-while-unowned",
    what: "what a former owner stored late, while the partition had none, counts as the last owner's",
    file: "delivery/recovery/backlog-owners.ts",
    find: "owners.findLastIndex(({ after }) => after < seq)",
    replace: "(owners.at(-1)?.after ?? seq) < seq ? owners.length - 1 : -1"
  },
  {
    name: "backlog-not-cleared",
    what: "what has ended stays in a backlog after a takeover, and the owner after the next sends it",
    file: "delivery/recovery/takeover.ts",
    find: "({ backlog, ends }, at) => removeFromBacklog(backlog, ends, moves[at]?.owners ?? []),",
    replace:
      "({ backlog, ends }) => Effect.asVoid(Effect.succeed([removeFromBacklog, backlog, ends])),"
  },
  {
    name: "replaced-left-behind",
    what: "a takeover removes a message that replaces another one, and leaves that one",
    file: "delivery/recovery/remove-ended.ts",
    find: "for (const replaced of replacedBy(message, owners))",
    replace: "for (const replaced of replacedBy(message, owners).slice(0, 0))",
    seed: 500_100
  },
  {
    name: "end-not-looked-at",
    what: "an owner that writes after the last message of a former one does not learn what that replaces",
    file: "delivery/backlog/drainer.ts",
    find: "    for (const seq of last.label.replaces) drain.replaced.add(seq)\n    return last.label.replaces\n",
    replace: "    return []\n",
    seed: 730_079
  },
  {
    name: "replaced-kept-after-power-cut",
    what: "a message that is stored after a power cut names its own sequence as replaced, and is removed",
    file: "delivery/backlog/write-steps.ts",
    find: "writes.replaced.filter(({ seq }) => seq < tail)",
    replace: "writes.replaced.filter(({ seq }) => seq < tail || tail <= seq)",
    seed: 900_475
  },
  {
    name: "replaced-moved-as-well",
    what: "a change of the number of partitions moves a message of a backlog, and the one that replaces it",
    file: "operations/repartition/move.ts",
    find: "from.replaced.add(seq)",
    replace: "void seq",
    seed: 703_049
  },
  {
    name: "settled-entry-moved-as-well",
    what: "a change of the number of partitions moves an entry of a backlog whose schedule it moves, too",
    file: "operations/repartition/settle.ts",
    find: "Effect.provideService(leaveMessage(memory, place, message), Broker, yield* Broker)",
    replace: "Effect.asVoid(Effect.succeed(leaveMessage))",
    seed: 700_373
  },
  {
    name: "end-let-go-while-it-stays",
    what: "the watermark passes an end whose message could not be removed from its backlog",
    file: "delivery/backlog/backlog-remover.ts",
    find: "      if (!isPacked(page)) return\n      const held = drain.heldOf(page)\n      held.saved =",
    replace: "      const held = drain.heldOf(page)\n      if (isPacked(page)) held.saved =",
    seed: 730_094
  },
  {
    name: "redelivered-in-flight-not-renewed",
    what: "what has ended and is still in flight is forgotten, however often it is redelivered",
    file: "delivery/source/queue-source.ts",
    find: "      this.#options.memory.completed.renew(seq, storedAt)\n",
    replace: "",
    seed: 745_424
  },
  {
    name: "replaced-known-only-once-removed",
    what: "an owner that cannot remove what the last one had replaced does not learn of the rest, and sends it",
    file: "delivery/backlog/backlog-reader.ts",
    find: "      for (const seq of replaced ?? []) drain.replaced.add(seq)\n      for (const seq of replaced ?? [])\n        yield* backlog.remove(seq, ({ subject }) => subject === last?.subject)\n",
    replace:
      "      for (const seq of replaced ?? []) {\n        drain.replaced.add(seq)\n        yield* backlog.remove(seq, ({ subject }) => subject === last?.subject)\n      }\n",
    seed: 760_345
  },
  {
    name: "read-while-replaced",
    what: "a message of a backlog is read while another one replaces it, and both are sent",
    file: "delivery/backlog/drainer.ts",
    find: '    // That may have begun since this step did.\n    if (drain.replacing > 0) return "never"\n',
    replace: ""
  },
  {
    name: "holder-not-counted",
    what: "who was missed for some seconds sends on, and others use its share of a host's cap as well",
    file: "cluster/assignment.ts",
    find: "holder === undefined || holder === id ? [id] : [id, holder]",
    replace: "holder === undefined || holder === id ? [id] : [id]"
  },
  {
    name: "late-acknowledgement-believed",
    what: "a success whose acknowledgement comes after the lease is over is not recorded as late",
    file: "delivery/execution/success-log.ts",
    find: "if (!this.#fence.holds()) {",
    replace: "if (stored.seq < 0) {"
  },
  {
    name: "late-message-not-looked-up",
    what: "an owner sends what a former one has stored late where it has forgotten that it ended",
    file: "delivery/backlog/late-messages.ts",
    find: "isKnown(delivery) || taken.value.has(entry)",
    replace: "isKnown(delivery)",
    seed: 950_492
  },
  {
    name: "copy-moved-while-taken-directly",
    what: "a queued copy is moved while its delivery is taken directly from its event",
    file: "delivery/source/queue-source.ts",
    find: "return this.#inFlight.has(place.seq) || this.#isTakenDirectly(delivery)",
    replace:
      "return this.#inFlight.has(place.seq) || (delivery === undefined && this.#isTakenDirectly(delivery))"
  },
  {
    name: "first-goal-only",
    what: "a watch counts as caught up with the first thing that it was known to lack",
    file: "endpoints/watch-lag.ts",
    find: "this.#goals = this.#goals.filter((goal) => goal.seq > this.#reached)",
    replace: "this.#goals = []",
    seed: 5024
  },
  {
    name: "fence-before-first-try-only",
    what: "a failure is recorded by who lost the partition while the history took nothing",
    file: "delivery/source/event-source.ts",
    find: "this.#facts.appendAnew(Effect.as(fence.asOwner, { fact, id }))",
    replace: "this.#facts.append(fact, id)",
    seed: 102_047
  },
  {
    name: "abandoned-requests-count",
    what: "what has ended is forgotten while requests that were given up still take redeliveries",
    file: "delivery/source/queue-source.ts",
    find: "this.#hasPulled && !this.#wasInterrupted && !this.#isInterrupted",
    replace: "this.#hasPulled",
    seed: 2_065
  },
  {
    name: "expired-while-looked-for",
    what: "an audit takes events that expire as it begins for such that no fact planned",
    file: "history/audit/reach.ts",
    find: "isWhole ? firstEvent : begins.events.first",
    replace: "begins.events.first"
  },
  {
    name: "record-without-time",
    what: "a retry record is known by its message's sequence alone, which a power cut gives again",
    file: "domain/retry-record.ts",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
    find: "entry === undefined ? `${stream}.${seq}.${at}`",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
    replace: "entry === undefined ? `${stream}.${seq}.${at * 0}`"
  },
  {
    name: "erasure-without-time",
    what: "the trace of an erased record is known by the sequence of its message alone: what gets the sequence after a power cut counts as released",
    file: "delivery/retry/retry-records.ts",
    find: "  return yield* isErasedValue(names.buckets.retries, retryRecordKey(place))\n",
    replace: `  const bucket = names.buckets.retries
  const { streamInfo } = yield* Broker
  const { state } = yield* streamInfo("list erased records", "KV_" + bucket, {
    subjects_filter: "$KV." + bucket + "." + place.stream + "." + place.seq + ".*"
  })
  for (const subject of Object.keys(state.subjects ?? {}))
    if (yield* isErasedValue(bucket, subject.slice(5 + bucket.length))) return true
  return false
`
  },
  {
    name: "move-resumed-without-progress",
    what: "a move to a backlog that got no answer goes on without the attempts that were made before it",
    file: "delivery/backlog/spill.ts",
    find: "this.#begun.get(placeName(handle.place)) ?? handle.delivery.progress",
    replace: "handle.delivery.progress",
    seed: 1_755
  },
  {
    name: "earlier-copy-proves-a-move",
    what: "a message that stays because its acknowledgement was lost proves that the later one moved on",
    file: "delivery/retry/applied-steps.ts",
    find: "isFollowedBy(place, sighting) &&",
    replace:
      "(slotOf(sighting.place) !== slotOf(place) || sighting.place.stream !== place.stream) &&",
    seed: 1_264
  },
  {
    name: "not-remembered-in-doubt",
    what: "what has ended is forgotten while it comes again in doubt, where NAKs are lost",
    file: "delivery/source/queue-source.ts",
    find: "      memory.completed.renew(seq, storedAt)\n      if (this.#options.isDoubtful()) return doubtPauseMs\n",
    replace:
      "      if (this.#options.isDoubtful()) return doubtPauseMs\n      memory.completed.renew(seq, storedAt)\n",
    seed: 3_545
  },
  {
    name: "revision-of-a-reading-kept",
    what: "a route that was found while the endpoints are read again keeps revision 0, and so do plans after it",
    file: "routing/subject-routes.ts",
    find: "version !== this.#version || revision !== this.#revision",
    replace: "version !== this.#version",
    seed: 7_310_116
  },
  {
    name: "enabled-not-counted",
    what: "a delivery whose turn came while its endpoint was disabled is sent beyond the host's cap",
    file: "delivery/execution/task.ts",
    find: "position.hostLine?.counts(sharedHost) === true",
    replace: "position.item === this",
    seed: 7_300_542
  },
  {
    name: "facts-before-change-unread",
    what: "who takes over a queue does not know what ended in it for endpoints that have another partition now",
    file: "delivery/recovery/takeover.ts",
    find: "message.seq <= historyAtChange || isMine(message.subject)",
    replace: "isMine(message.subject)",
    seed: 3_001_652
  },
  {
    name: "unapplied-decision-passed",
    what: "the watermark passes a fact that is stored while its decision could not be applied, and its message stays",
    file: "delivery/execution/settlement.ts",
    find: "return Effect.andThen(work, done)",
    replace: "return Effect.ensuring(work, done)",
    seed: 3_000_336
  },
  {
    name: "ended-entries-overwritten",
    what: "a change of partitions stores which entries of a message have left it, and forgets those that ended before",
    file: "operations/repartition/settle.ts",
    find: "    for (const entry of before.ended) completed.add(slotOf({ seq, entry }), at)\n    yield* saveEnded(completed, { stream, seq, at }, heldIn(references), before)\n",
    replace:
      "    yield* saveEnded(completed, { stream, seq, at }, heldIn(references), { ...before, ended: [] })\n",
    seed: 4_001_230
  },
  {
    name: "heartbeat-repeated-too-late",
    what: "one heartbeat without an answer takes a worker's share away",
    file: "cluster/roster.ts",
    find: "export const answerShare = 0.2",
    replace: "export const answerShare = 0.3"
  },
  {
    name: "reused-after-reading-not-noticed",
    what: "a sequence that reading has passed is stored again after a power cut, and never read",
    file: "delivery/backlog/write-steps.ts",
    find: "Math.max(this.#last, this.#options.highestOf(key))",
    replace: "this.#last"
  },
  {
    name: "memory-from-before-a-break",
    what: "what a new owner has read before a power cut counts after it",
    file: "worker/partition-runner.ts",
    find: "if (life() !== readOn) return yield* readBeforeABreak",
    replace: ""
  },
  {
    name: "late-message-relied-on",
    what: "what a former owner stored late counts as stored by who has to store it now",
    file: "delivery/backlog/backlog-end.ts",
    find: "if (isOwn && wanted.has(name))",
    replace: "if (wanted.has(name))"
  },
  {
    name: "begun-after-what-was-not-read",
    what: "an owner takes for in time what a former one stored after it had read what waits (stalls)",
    file: "delivery/partition.ts",
    find: "Math.min(last, memory.backlogEnd ?? last)",
    replace: "last"
  },
  {
    name: "late-message-taken-from-its-queue",
    what: "what a former owner stored late is delivered though the queue still holds it, in a lane or for a retry (stalls)",
    file: "delivery/recovery/late-entries.ts",
    find: "return there === origin || isMoved(sighting.origin) || sighting.attempts",
    replace: "return sighting.attempts"
  },
  {
    name: "late-message-moved-unseen",
    what: "a change of the number of partitions takes what a former owner stored late for what waits (stalls)",
    file: "operations/repartition/move.ts",
    find: "yield* findHandled(partition, owners, from, messages)",
    replace: "new Set<number>()"
  },
  {
    name: "late-message-replaces",
    what: "a change of the number of partitions leaves a message out that one replaces which was stored late, and that one for its sake (stalls)",
    file: "operations/repartition/move.ts",
    find: "replacedBy(message, of.owners)",
    replace: "replacedBy(message, [])"
  },
  {
    name: "late-message-removes",
    what: "a takeover removes a message that was stored late, and what it was to replace, which waits (stalls)",
    file: "delivery/recovery/remove-ended.ts",
    find: "replacedBy(message, owners)",
    replace: "replacedBy(message, [])"
  },
  {
    name: "late-message-proves-itself",
    what: "a message that was stored late proves to the owner after the next that its deliveries were moved, and they are taken for handled there",
    file: "delivery/recovery/takeover.ts",
    find: "(writer !== undefined && isLate(owners, seq, writer))",
    replace: "(writer !== undefined && isLate([], seq, writer))"
  },
  {
    name: "adopted-not-handed-over",
    what: "the next owner does not hear that its predecessor delivers from a late message",
    file: "delivery/recovery/handed-memory.ts",
    find: "const last = new Map(recordedAttempts.last)",
    replace:
      "const last = new Map([...recordedAttempts.last].filter(([, { attempt }]) => attempt > 0))"
  },
  {
    name: "end-of-emptied-forgotten",
    what: "what was stored in a backlog that a power cut has emptied is forgotten before that is noticed",
    file: "delivery/backlog/backlog-index.ts",
    find: "Math.max(last, before, Math.ceil(window.next) - 1, from - 1)",
    replace: "Math.max(last, before * 0, Math.ceil(window.next) - 1, from - 1)"
  },
  {
    name: "writer-of-reused-sequences-late",
    what: "what an owner stored at sequences that a power cut set back counts as an earlier owner's",
    file: "delivery/recovery/backlog-owners.ts",
    find: "return known === -1 ? writer < owner : known < then",
    replace: "return writer !== owner && known >= -1",
    seed: 25_690
  }
]

/**
 * Defects that a backlog of references invites: what is taken wrongly there loses deliveries, or
 * sends them twice. Each is a change of the source, and the simulation has a fault that shows it.
 */
export const backlogTraps: ReadonlyArray<Sabotage> = [
  {
    name: "late-message-taken-for-own",
    what: "what a former owner stores late in a backlog is taken for the owner's own (stalls)",
    file: "delivery/backlog/late-messages.ts",
    find: "this.#owners ?? []",
    replace: "[]"
  },
  {
    name: "references-not-located",
    what: "a search for deliveries does not unpack the messages of backlogs (crashes of routers)",
    file: "history/locate.ts",
    find: "const packed = referencesIn(message.subject, header, streams)",
    replace: "const packed = referencesIn('', header, streams)"
  },
  {
    name: "siblings-ended-together",
    what: "the end of one entry counts for all of its message (crashes)",
    file: "domain/fact.ts",
    find: "seq + entry / entriesPerSequence",
    replace: "seq + Math.min(1, entry) / entriesPerSequence"
  },
  {
    name: "entry-before-sole-plan",
    what: "a sole plan is not stored before its entry (crashes at delivery-stored)",
    file: "routing/fan-out.ts",
    find: "    if (planCommit.isCommitted) {\n      this.#store(planned, untried)",
    replace:
      "    if (planCommit.isCommitted || untried.attempts === 0) {\n      this.#store(planned, untried)"
  },
  {
    name: "gone-by-a-replica",
    what: "a replica that lacks an event proves that it is gone (copies of streams that lag)",
    file: "delivery/bodies/event-bodies.ts",
    find: "            else missing.push(reference)",
    replace: '            else settle(reference, "gone")'
  },
  {
    name: "event-by-sequence-alone",
    what: "an event is known by its sequence, which a power cut gives again",
    file: "delivery/bodies/event-bodies.ts",
    find: "message !== undefined && message.seq === eventSeq && message.time.getTime() === eventAt",
    replace: "message !== undefined && message.seq === eventSeq && eventAt > 0"
  },
  {
    name: "body-left-in-a-short-lived-event",
    what: "a delivery waits without its body though its event is removed before (events that expire)",
    file: "policy/event-outlasts.ts",
    find: "keptMs !== undefined && keptMs > neededMs(delivery)",
    replace: "keptMs !== undefined && keptMs + neededMs(delivery) > 0"
  }
]

/** What goes wrong easily where events pass by a bypass; found with `--bypass`. */
export const bypassTraps: ReadonlyArray<Sabotage> = [
  {
    name: "released-before-it-passed",
    what: "the routers' consumer acknowledges an event of the bypass that is not routed there yet",
    file: "routing/event-way.ts",
    find: 'watch.isRouted(event.seq) ? "finished" : "passes"',
    replace: '"finished"'
  },
  {
    name: "routed-both-ways",
    what: "an event of the bypass is routed by the routers' consumer, too",
    file: "routing/event-way.ts",
    find: 'watch.isRouted(event.seq) ? "finished" : "passes"',
    replace: '"route"'
  },
  {
    name: "floor-of-another-connection",
    what: "what a bypass had routed counts after the broker lost the end of the events (power cuts)",
    file: "routing/bypass-watch.ts",
    find: "    floor = undefined\n    readAt = Number.NEGATIVE_INFINITY\n",
    replace: ""
  },
  {
    name: "bypass-unannounced",
    what: "a bypass begins before all routers know of it (workers that pause)",
    file: "policy/bypass.ts",
    find: 'return seenForMs >= announcedForMs ? "open" : "none"',
    replace: 'return "open"'
  },
  {
    name: "bypass-unread",
    what: "a router relies on what it has read long ago (workers that pause)",
    file: "routing/bypass-watch.ts",
    find: "elapsedMs() - readAt < knownForMs",
    replace: "elapsedMs() - readAt < Number.POSITIVE_INFINITY"
  },
  {
    name: "plans-of-the-bypass-forgotten",
    what: "what passed by a bypass is new to its next router (consumers that forget deliveries)",
    file: "routing/event-way.ts",
    find: '=== "bypass",\n  decide',
    replace: '=== "undecided",\n  decide'
  }
]
