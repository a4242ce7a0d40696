//! It is AES-256-GCM, byte for byte, and opens nothing else.

use aes_gcm::{AeadInOut, Aes256Gcm, KeyInit};
use anteroom_cipher::{Cipher, MAX_TEXT_LENGTH};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn it_is_what_the_general_crate_makes(
        key: [u8; 32],
        nonce: [u8; 12],
        associated in vec(any::<u8>(), 0..100),
        text in vec(any::<u8>(), 0..=MAX_TEXT_LENGTH),
    ) {
        let mut expected = text.clone();
        let expected_tag = Aes256Gcm::new(&key.into())
            .encrypt_inout_detached(&nonce.into(), &associated, expected.as_mut_slice().into())
            .unwrap();
        let mut encrypted = text.clone();
        let tag = Cipher::new(&key).encrypt(&nonce, &associated, &mut encrypted).unwrap();
        prop_assert_eq!(&encrypted, &expected);
        prop_assert_eq!(tag, <[u8; 16]>::from(expected_tag));
        prop_assert!(Cipher::new(&key).decrypt(&nonce, &associated, &mut encrypted, &tag));
        prop_assert_eq!(encrypted, text);
    }

    #[test]
    fn one_wrong_bit_anywhere_opens_nothing(
        key: [u8; 32],
        nonce: [u8; 12],
        associated in vec(any::<u8>(), 1..40),
        text in vec(any::<u8>(), 1..=MAX_TEXT_LENGTH),
        bit: prop::sample::Index,
    ) {
        let mut all = [&nonce[..], &associated, &text].concat();
        let mut encrypted = text;
        let mut tag = Cipher::new(&key).encrypt(&nonce, &associated, &mut encrypted).unwrap();
        all.splice(12 + associated.len().., encrypted.iter().copied().chain(tag));
        let bit = bit.index(8 * all.len());
        all[bit / 8] ^= 1 << (bit % 8);
        let (nonce, rest) = all.split_first_chunk().unwrap();
        let (associated, rest) = rest.split_at(associated.len());
        let (changed, changed_tag) = rest.split_last_chunk::<16>().unwrap();
        tag.copy_from_slice(changed_tag);
        let mut text = changed.to_vec();
        prop_assert!(!Cipher::new(&key).decrypt(nonce, associated, &mut text, &tag));
        prop_assert_eq!(text, changed);
    }
}

#[test]
fn a_text_that_is_too_long_is_refused() {
    let cipher = Cipher::new(&[1; 32]);
    let mut text = [0; MAX_TEXT_LENGTH + 1];
    assert!(cipher.encrypt(&[2; 12], b"", &mut text).is_none());
    assert!(!cipher.decrypt(&[2; 12], b"", &mut text, &[0; 16]));
}
