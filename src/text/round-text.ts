/**
 * Returns what a round is called before people, who know dead letters and replays by their names:
 * `first round`, `redelivery of dead letter 17`, `replay resend-mabc12`.
 */
export const roundText = (round: string): string => {
  const name = round.slice(1)
  if (round.startsWith("d")) return `redelivery of dead letter ${name}`
  return round.startsWith("r") ? `replay ${name}` : "first round"
}
