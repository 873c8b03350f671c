import type * as z from 'zod';

export interface RunContext {
  readonly id: string;
  /** The user or payment session that pays, so that no buyer's runs hold up those of others. */
  readonly buyer: string;
  /** The key of the buyer's request, unchanged in retries, so that outside effects happen once. */
  readonly idempotencyKey: string;
  /** Aborts after the run's time limit; later results are discarded. */
  readonly signal: AbortSignal;
}

export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json };

export interface GatewayAction<Input extends z.ZodType = z.ZodType> {
  readonly plugin: string;
  readonly action: string;
  readonly description: string;
  /** Base units of one US dollar. */
  readonly price: bigint;
  /**
   * True if a third party sets and receives the price: a buyer names a maximum, and pays only with bought
   * credits.
   */
  readonly isPricedByOthers?: boolean;
  /** Published as JSON Schema. */
  readonly input: Input;
  /**
   * Runs the action for a paying caller, perhaps again for one that received no answer. No error is charged.
   * @throws BadRequestError if the action refuses its input; any other error is a failed run.
   */
  // A method rather than a function property: its bivariance lets an action declare a narrower input.
  run(input: z.output<Input>, context: RunContext): Promise<Json>;
}

/** Declares an action and infers the type of its input. */
export const gatewayAction = <Input extends z.ZodType>(
  declared: GatewayAction<Input>,
): GatewayAction => declared;
