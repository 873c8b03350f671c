import type * as z from 'zod';

/** What a run may use of the gateway. */
export interface RunContext {
  /** The debit's: names this run where something keeps a record of it. */
  readonly id: string;
  /** The same for a run that its buyer asks for again, where something outside is to do it once. */
  readonly idempotencyKey: string;
  /** Aborts when the run has taken too long: what comes after that serves nobody. */
  readonly signal: AbortSignal;
}

/** What JSON can say: the result of a run. */
export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json };

/** Something that the gateway sells, by the names of its plugin and of itself. */
export interface GatewayAction<Input extends z.ZodType = z.ZodType> {
  readonly plugin: string;
  readonly action: string;
  /** For people who consider buying it. */
  readonly description: string;
  /** Base units of a US dollar. */
  readonly price: bigint;
  /** What it takes, which is told as a JSON schema. */
  readonly input: Input;
  /**
   * Serves whoever pays. It may be run again by somebody who did not hear the answer.
   *
   * @throws BadRequestError for what it refuses of its input; by anything else it has failed. Either
   *   way nobody pays.
   */
  // A method, whose input may be narrower than that of any action: it only gets what `input` gave.
  run(input: z.output<Input>, context: RunContext): Promise<Json>;
}

/** Declares an action with the type of its input. */
export const gatewayAction = <Input extends z.ZodType>(
  declared: GatewayAction<Input>,
): GatewayAction => declared;
