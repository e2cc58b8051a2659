// Takes a backend out of service for maintenance, and puts it back.
//
//	drain [-socket PATH] POOL ADDRESS          new connections go elsewhere for two hours, open ones stay
//	drain [-socket PATH] -undo POOL ADDRESS    it takes new connections again
//
// docs/api.md says how its package spillway/v1 is generated.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	spillway "spillway-examples/spillway/v1"
)

// Drains a backend in one pool, beside the configuration.
func drain(ctx context.Context, overrides spillway.OverridesClient, pool, address string) ([]*spillway.Warning, string, error) {
	changed, err := overrides.SetOverrides(ctx, &spillway.SetOverridesRequest{
		Targets:  []*spillway.OverrideTarget{{Pool: pool, Backend: address}},
		Kind:     spillway.OverrideKind_OVERRIDE_KIND_DRAIN,
		Duration: durationpb.New(2 * time.Hour),
		Reason:   "maintenance",
	})
	return changed.GetWarnings(), changed.GetUnstored(), err
}

// Ends that. A drain that is not there is no error.
func undrain(ctx context.Context, overrides spillway.OverridesClient, pool, address string) ([]*spillway.Warning, string, error) {
	name := fmt.Sprintf("pools/%s/backends/%s/drain", pool, address)
	changed, err := overrides.RemoveOverrides(ctx, &spillway.RemoveOverridesRequest{Names: []string{name}})
	return changed.GetWarnings(), changed.GetUnstored(), err
}

// Why the daemon refused a call, as a word for programs: ErrorReason of errors.proto.
func reason(refused *status.Status) string {
	for _, detail := range refused.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.Domain == "spillway" {
			return info.Reason
		}
	}
	return refused.Code().String()
}

func run(socket, pool, address string, undo bool) error {
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()

	change := drain
	if undo {
		change = undrain
	}
	warnings, unstored, err := change(ctx, spillway.NewOverridesClient(connection), pool, address)
	if err != nil {
		return err
	}
	for _, warning := range warnings {
		fmt.Fprintln(os.Stderr, "warning:", warning.Text)
	}
	if unstored != "" {
		fmt.Fprintln(os.Stderr, "warning: in memory only:", unstored)
	}
	// The backend as the packet path has it now.
	now, err := spillway.NewSpillwayClient(connection).GetBackendStatus(ctx,
		&spillway.GetBackendStatusRequest{Pool: pool, Address: address})
	if err != nil {
		return err
	}
	word := strings.ToLower(strings.TrimPrefix(now.State.String(), "BACKEND_STATE_"))
	fmt.Printf("%s is %s (%s)\n", now.Address, word, now.Reason.GetText())
	return nil
}

func main() {
	socket := flag.String("socket", "/run/spillway/spillwayd.sock", "unix socket of the daemon")
	undo := flag.Bool("undo", false, "put it back")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: drain [-socket PATH] [-undo] POOL ADDRESS")
		os.Exit(2)
	}
	if err := run(*socket, flag.Arg(0), flag.Arg(1), *undo); err != nil {
		refused := status.Convert(err)
		fmt.Fprintf(os.Stderr, "%s: %s\n", reason(refused), refused.Message())
		os.Exit(1)
	}
}
