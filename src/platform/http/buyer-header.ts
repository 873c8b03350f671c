/** Names the buyer for whom the platform calls one of its services. Believed only with that service's key. */
export const BUYER_HEADER = 'x-buyer';

const MAX_BUYER = 256;

export const buyerHeaders = (key: string, buyer: string) => ({
  authorization: `Bearer ${key}`,
  // A name may have characters that no header can hold.
  [BUYER_HEADER]: encodeURIComponent(buyer).slice(0, MAX_BUYER),
});
