// SPDX-License-Identifier: Apache-2.0
// Opens QUIC connections through a MASQUE proxy (CONNECT-UDP, RFC 9298), and prints one line of JSON with the duration of each handshake:
// `load -template URI -ca FILE -names 'n{}.example' [-handshakes N] [-cold]`. The proxy resolves the names.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/quic-go/masque-go"
	"github.com/quic-go/quic-go"
	"github.com/yosida95/uritemplate/v3"
)

const (
	// Limit of each handshake.
	limit = 20 * time.Second
	// Bytes of a packet to the proxy, so that it can carry an Initial to the server.
	outerSize = 1350
	// Bytes of a packet to the server: the least that QUIC permits.
	innerSize = 1200
)

type load struct {
	template *uritemplate.Template
	roots    *x509.CertPool
	port     int
}

func main() {
	template := flag.String("template", "", "URI template of the proxy")
	ca := flag.String("ca", "", "PEM file with the trusted CA certificates")
	names := flag.String("names", "", "server names; {} is replaced by the number of the handshake")
	port := flag.Int("port", 443, "UDP port of the servers")
	handshakes := flag.Int("handshakes", 1, "number of handshakes, one at a time")
	cold := flag.Bool("cold", false, "open a new connection to the proxy for each handshake, and include it in the duration")
	flag.Parse()
	if err := run(*template, *ca, *names, *port, *handshakes, *cold); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(template, ca, names string, port, handshakes int, cold bool) error {
	parsed, err := uritemplate.New(template)
	if err != nil {
		return fmt.Errorf("-template: %w", err)
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return fmt.Errorf("-ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return errors.New("-ca: no certificate in " + ca)
	}
	load := load{parsed, roots, port}
	proxy := load.client()
	defer func() { proxy.Close() }()
	if !cold {
		// Connects to the proxy, too.
		if _, err := load.handshake(proxy, strings.ReplaceAll(names, "{}", "warm")); err != nil {
			return err
		}
	}
	durations := make([]float64, 0, handshakes)
	for number := range handshakes {
		name := strings.ReplaceAll(names, "{}", strconv.Itoa(number))
		if cold {
			proxy.Close()
			proxy = load.client()
		}
		duration, err := load.handshake(proxy, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		durations = append(durations, float64(duration.Microseconds())/1000)
	}
	return json.NewEncoder(os.Stdout).Encode(map[string][]float64{"handshake_ms": durations})
}

func (l *load) client() *masque.Client {
	return &masque.Client{
		TLSClientConfig: l.tls(""),
		QUICConfig:      &quic.Config{EnableDatagrams: true, InitialPacketSize: outerSize},
	}
}

// The TLS settings of connections to a server, or to the proxy, whose name is in the template.
func (l *load) tls(name string) *tls.Config {
	return &tls.Config{ServerName: name, RootCAs: l.roots, NextProtos: []string{"h3"}}
}

// Return the time from the request to the proxy until the handshake with the server is complete.
func (l *load) handshake(proxy *masque.Client, name string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	started := time.Now()
	socket, _, err := proxy.DialAddr(ctx, l.template, net.JoinHostPort(name, strconv.Itoa(l.port)))
	if err != nil {
		return 0, err
	}
	defer socket.Close()
	endpoint := quic.Transport{Conn: socket}
	defer endpoint.Close()
	config := &quic.Config{InitialPacketSize: innerSize, DisablePathMTUDiscovery: true}
	connection, err := endpoint.Dial(ctx, &net.UDPAddr{IP: net.IPv6zero, Port: l.port}, l.tls(name), config)
	if err != nil {
		return 0, err
	}
	duration := time.Since(started)
	// H3_NO_ERROR (RFC 9114, section 8.1).
	return duration, connection.CloseWithError(0x100, "")
}
