/** Names of the prices of credits, and the US cents of each. A credit is a cent. */
export const CREDIT_PRICES = {
  'credits-500': 500,
  'credits-1000': 1_000,
  'credits-2500': 2_500,
  'credits-5000': 5_000,
} as const;

export type CreditPrice = keyof typeof CREDIT_PRICES;
