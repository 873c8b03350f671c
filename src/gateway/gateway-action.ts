import type * as z from 'zod';

/** The gateway's context of a run. */
export interface RunContext {
  /** The debit's id, which names this run in records. */
  readonly id: string;
  /**
   * The key of the buyer's request, unchanged when the buyer retries it, so that outside effects happen
   * once.
   */
  readonly idempotencyKey: string;
  /** The signal that aborts after the run's time limit; later results are discarded. */
  readonly signal: AbortSignal;
}

/** A JSON value: the result of a run. */
export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json };

/** An action that the gateway sells, identified by plugin and action name. */
export interface GatewayAction<Input extends z.ZodType = z.ZodType> {
  readonly plugin: string;
  readonly action: string;
  /** A description for prospective buyers. */
  readonly description: string;
  /** Base units of one US dollar. */
  readonly price: bigint;
  /** The input's schema, published as JSON Schema. */
  readonly input: Input;
  /**
   * Runs the action for a paying caller. A caller that received no answer may run the action again.
   *
   * @throws BadRequestError if the action refuses its input; any other error is a failed run. No error is
   *   charged.
   */
  // A method rather than a function property: parameter bivariance lets an action declare a narrower
  // input.
  run(input: z.output<Input>, context: RunContext): Promise<Json>;
}

/** Declares an action and infers the type of its input. */
export const gatewayAction = <Input extends z.ZodType>(
  declared: GatewayAction<Input>,
): GatewayAction => declared;
